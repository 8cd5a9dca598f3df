import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.ProxySelector
import java.net.ServerSocket
import java.net.Socket
import java.net.SocketException
import java.time.Duration
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeoutException
import kotlin.concurrent.thread
import runner.HttpCall
import runner.HttpFailure
import runner.HttpReply
import runner.JvmHttp

/** The runner's HTTP client, against servers that misbehave. */
fun httpTests(): Map<String, () -> Unit> = mapOf(
    "HTTP: a redirect is an answer" to {
        val location = "http://127.0.0.1:1/elsewhere"
        val reply = served("HTTP/1.1 302 Found\r\nlocation: $location\r\ncontent-length: 2\r\n\r\nno") { it.get() }
        equal(reply.status to reply.body.decodeToString(), 302 to "no", "the reply")
        check("location" to location in reply.headers) { reply.headers }
    },
    "HTTP: a body that never ends is cut off" to {
        val endless = "HTTP/1.1 200 OK\r\n\r\n"
        equal((failure { served(endless, fill = true) { it.get() } } as HttpFailure).kind, "too_large", "much")
        check(failure { served(endless, seconds = 2) { it.get() } } is TimeoutException) { "slow" }
    },
    "HTTP: a request that takes too long leaves no connection" to {
        for (answer in listOf("", "HTTP/1.1 200 OK\r\nserver: ", "HTTP/1.1 200 OK\r\n\r\n")) {
            ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { server ->
                val reply = JvmHttp(Duration.ofSeconds(1)).send(call(server.localPort))
                server.accept().use { socket ->
                    readHeaders(socket)
                    socket.getOutputStream().write(answer.toByteArray())
                    val end = System.nanoTime() + Duration.ofSeconds(30).toNanos()
                    untilLeft {
                        check(System.nanoTime() < end) { "the client stays after: $answer" }
                        Thread.sleep(20)
                        socket.getOutputStream().write('x'.code)
                        true
                    }
                }
                val error = failure { reply.get() }
                check(error is TimeoutException || (error as? HttpFailure)?.kind == "timeout") { error }
            }
        }
    },
    "HTTP: a request has the headers that it names, and takes no proxy" to {
        val system = ProxySelector.getDefault()
        ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { server ->
            val asked = CompletableFuture<String>()
            thread(isDaemon = true) {
                server.accept().use {
                    asked.complete(readHeaders(it))
                    it.getOutputStream().write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".toByteArray())
                    untilLeft { it.getInputStream().read() >= 0 }
                }
            }
            try {
                // A proxy that nobody listens at.
                ProxySelector.setDefault(ProxySelector.of(InetSocketAddress(InetAddress.getLoopbackAddress(), 1)))
                equal(JvmHttp().send(call(server.localPort)).get().status, 200, "the status")
            } finally {
                ProxySelector.setDefault(system)
            }
            val names = asked.get().lines().drop(1).filter { it.isNotEmpty() }.map { it.substringBefore(':').lowercase() }
            equal(names.toSet(), setOf("host", "content-length", "user-agent", "accept"), "the headers")
            check("user-agent: countersign" in asked.get().lowercase()) { asked.get() }
        }
    },
    "HTTP: half a response is an interruption" to {
        equal((failure { served("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", hold = false) { it.get() } } as HttpFailure).kind, "interrupted", "half")
    },
    "HTTP: what cannot connect was not sent" to {
        val closed = ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { it.localPort }
        equal((failure { JvmHttp().send(call(closed)).get() } as HttpFailure).kind, "connect", "the kind")
    },
    "HTTP: a cancelled request is aborted" to {
        ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { server ->
            val reply = JvmHttp().send(call(server.localPort))
            server.accept().use { socket ->
                readHeaders(socket)
                reply.cancel(true)
                // Times out if the client stays.
                socket.soTimeout = 60_000
                untilLeft { socket.getInputStream().read() >= 0 }
            }
        }
    },
)

private fun call(port: Int) = HttpCall("POST", "http://127.0.0.1:$port/", listOf("accept" to "application/json"), "{}".toByteArray())

private fun failure(act: () -> Unit): Throwable = try {
    act()
    throw AssertionError("no failure")
} catch (error: ExecutionException) {
    error.cause!!
}

/** Serves one request with this answer, and then sends zeros without end, or nothing until the client leaves, or hangs up. */
private fun served(
    answer: String,
    fill: Boolean = false,
    hold: Boolean = true,
    seconds: Long = 60,
    act: (CompletableFuture<HttpReply>) -> HttpReply,
): HttpReply =
    ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { server ->
        thread(isDaemon = true) { server.accept().use { serve(it, answer, fill, hold) } }
        act(JvmHttp(Duration.ofSeconds(seconds)).send(call(server.localPort)))
    }

private fun serve(socket: Socket, answer: String, fill: Boolean, hold: Boolean) {
    readHeaders(socket)
    socket.getOutputStream().write(answer.toByteArray())
    val zeros = ByteArray(65_536)
    untilLeft {
        if (fill) socket.getOutputStream().write(zeros)
        fill || (hold && socket.getInputStream().read() >= 0)
    }
}

private fun readHeaders(socket: Socket): String {
    val read = StringBuilder()
    while (!read.endsWith("\r\n\r\n")) read.append(socket.getInputStream().read().toChar())
    return read.toString()
}

/** Repeats while there is more, or until the client has closed the connection. */
private fun untilLeft(more: () -> Boolean) {
    try {
        while (more()) continue
    } catch (ignored: SocketException) {
    }
}
