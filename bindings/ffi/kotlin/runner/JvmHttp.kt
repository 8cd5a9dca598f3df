package runner

import java.net.ConnectException
import java.net.ProxySelector
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpConnectTimeoutException
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse
import java.net.http.HttpResponse.BodySubscriber
import java.net.http.HttpResponse.BodySubscribers
import java.net.http.HttpTimeoutException
import java.nio.ByteBuffer
import java.time.Duration
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Flow.Subscription
import java.util.concurrent.TimeUnit

/**
 * The HTTP client of Java 11 and later. Android has none: implement [Http] with its own there. A `GET` whose connection fails is sent again
 * by this client, which does no harm; nothing else is. Requests go through no proxy unless one is given, whatever the system's properties say.
 */
class JvmHttp(private val timeout: Duration = Duration.ofSeconds(20), proxy: ProxySelector = HttpClient.Builder.NO_PROXY) : Http {
    private val client = HttpClient.newBuilder()
        .followRedirects(HttpClient.Redirect.NEVER)
        .version(HttpClient.Version.HTTP_1_1)
        .connectTimeout(timeout.dividedBy(2))
        .proxy(proxy)
        .build()

    override fun send(call: HttpCall): CompletableFuture<HttpReply> {
        val request = HttpRequest.newBuilder(URI(call.url)).method(call.method, call.body?.let(BodyPublishers::ofByteArray) ?: BodyPublishers.noBody())
        // This client would name itself and the version of Java.
        request.setHeader("user-agent", "countersign")
        call.headers.forEach { (name, value) -> request.setHeader(name, value) }
        // Ends with the headers. Before Java 16 nothing else ends an exchange that waits for them, and `Capped` ends one that reads the body.
        request.timeout(timeout)
        val reply = CompletableFuture<HttpReply>()
        val exchange = client.sendAsync(request.build()) { Capped(BodySubscribers.ofByteArray(), reply) }
        exchange.whenComplete { response, error ->
            if (error == null) reply.complete(read(response)) else reply.completeExceptionally(failure(error))
        }
        // Of all of it, the body too.
        reply.orTimeout(timeout.toMillis(), TimeUnit.MILLISECONDS)
        reply.whenComplete { _, error -> if (error != null) exchange.cancel(true) }
        return reply
    }

    private fun read(response: HttpResponse<ByteArray>): HttpReply {
        val headers = response.headers().map().flatMap { (name, values) -> values.map { name to it } }
        return HttpReply(response.statusCode(), headers, response.body())
    }

    private fun failure(error: Throwable): Throwable {
        val causes = generateSequence(error) { it.cause }.toList()
        return causes.find { it is HttpFailure }
            ?: causes.find { it is ConnectException || it is HttpConnectTimeoutException }?.let { HttpFailure("connect", it.javaClass.name) }
            ?: causes.find { it is HttpTimeoutException }?.let { HttpFailure("timeout", it.javaClass.name) }
            // Not the message, which could contain the URL.
            ?: HttpFailure("interrupted", causes.last().javaClass.name)
    }

    /** Ends the exchange when the body becomes too large, or when the reply is given up. */
    private class Capped(private val inner: BodySubscriber<ByteArray>, private val reply: CompletableFuture<HttpReply>) : BodySubscriber<ByteArray> by inner {
        private var left = MAX_BODY
        private lateinit var subscription: Subscription

        override fun onSubscribe(subscription: Subscription) {
            this.subscription = subscription
            inner.onSubscribe(subscription)
            reply.whenComplete { _, error -> if (error != null) subscription.cancel() }
        }

        override fun onNext(items: List<ByteBuffer>) {
            left -= items.sumOf { it.remaining() }
            if (left >= 0) return inner.onNext(items)
            subscription.cancel()
            inner.onError(HttpFailure("too_large", "the response is larger than $MAX_BODY bytes"))
        }
    }

    private companion object {
        const val MAX_BODY = 16 * 1024 * 1024
    }
}
