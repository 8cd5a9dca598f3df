package runner

import com.google.gson.Gson
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import countersign.Need
import countersign.StoredDocument
import countersign.Swaps
import countersign.UnsignedOrder
import java.io.IOException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CompletionException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Executors
import java.util.concurrent.Future
import java.util.concurrent.FutureTask
import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import kotlin.concurrent.thread

/** A request to the service or to a chain. The URL and the headers can contain keys: do not log them. */
class HttpCall(val method: String, val url: String, val headers: List<Pair<String, String>>, val body: ByteArray?)

/** A complete response, with any status. */
class HttpReply(val status: Int, val headers: List<Pair<String, String>>, val body: ByteArray)

/**
 * Why there is no complete response: `connect` (only if nothing can have been sent), `timeout`, `interrupted` or `too_large`. The detail is
 * shown, so it must not contain the URL or a header, as the messages of some HTTP clients do.
 */
class HttpFailure(val kind: String, detail: String) : IOException(detail)

/** The platform's HTTP. */
fun interface Http {
    /**
     * Sends a request once, follows no redirect, and ends it after some 20 seconds, however slowly bytes arrive, with its connection. The
     * future fails with [HttpFailure] or [TimeoutException]; cancelling it aborts the request. What this throws by itself was not sent.
     */
    fun send(call: HttpCall): CompletableFuture<HttpReply>
}

/** Thrown by an [Owner] who has neither signed nor sent anything, so that it can be asked again. */
class NothingSent(message: String, cause: Throwable? = null) : Exception(message, cause)

/** A wallet's error, with its code of EIP-1193 or JSON-RPC. The machine knows after which codes nothing was sent. */
class WalletError(val code: Long, message: String, cause: Throwable? = null) : Exception(message, cause)

/** Where documents survive. One runner at a time has it. */
interface Store : AutoCloseable {
    /**
     * Identifies this place: a copy has another one, and so has a place where an older document `index` was put back. Empty where the store
     * cannot tell: each opening is then taken for a copy. Two orders could otherwise share a secret.
     */
    val place: String

    /** Reads every document. */
    fun load(): List<StoredDocument>

    /** Writes documents durably, in this order. One without bytes is deleted. */
    fun write(documents: List<Pair<String, ByteArray?>>)
}

/** The owner, or the app in their name. Each method is called in a thread of its own, except [hears]. */
interface Owner {
    /** Shows the `terms`, the whole `summary` and the `warnings` of an order, and asks whether to sign it. */
    fun consents(order: JsonObject): Boolean

    /**
     * Signs an order for the `chain` and the `account` of the request. Returns false if a wallet has sent the transaction by itself: the
     * payment, the redemption or the refund, as the `purpose` says. A request with `replaces` raises the fee of a payment on a Bitcoin-like
     * chain that is in no block, with the same coins.
     *
     * Throws [NothingSent] if the order is not signed. After any other error, unless it is a [WalletError] whose code says otherwise or the
     * option `sign_only` is set, a payment may have been sent: nobody is asked again, and the order counts as paid.
     *
     * This may take its time: what was sent is heard also where nobody waits for it any more. For one purpose of an order it is called once
     * at a time; a call that takes more than ten minutes counts as lost, and there is another one.
     */
    fun signs(request: JsonObject, order: UnsignedOrder): Boolean

    /** Hears an event. This must not block. */
    fun hears(event: JsonObject)
}

/** The JSON documents with which the machine is opened. */
class Settings(val options: ByteArray, val registry: ByteArray, val nodes: ByteArray, val policy: ByteArray = ByteArray(0))

/**
 * Runs whole swaps on the Java machine and on Android: the loop around [Swaps], which decides everything. It has the store until it is closed.
 *
 * A runner may end at any moment, as a process does that is killed. The next one on the same store continues with [follow].
 */
class SwapRunner internal constructor(private val swaps: Swaps, private val store: Store, private val http: Http, private val owner: Owner) :
    AutoCloseable {
    constructor(settings: Settings, store: Store, http: Http, owner: Owner) : this(open(settings, store), store, http, owner)

    private val calls = HashMap<Long, CompletableFuture<JsonObject>>()
    private val running = ConcurrentHashMap<ULong, Future<*>>()
    /** Signers at work, by order and purpose: two calls at once could send two transactions. */
    private val signing = HashMap<String, Signing>()
    private val workers = Executors.newCachedThreadPool { Thread(it).apply { isDaemon = true } }
    private val changed = Semaphore(0)
    @Volatile private var isClosed = false
    /** Why the machine took no reply to a need, not even that it failed. Every call fails with it. */
    @Volatile private var refused: Exception? = null
    /** Why the loop has ended. Every later call fails with it. */
    @Volatile private var end: Throwable? = null
    private val loop = thread(name = "swaps") { repeatUntilClosed() }

    /** Asks for a quote. The future has the event `quoted` or `failed`. */
    fun quote(wish: JsonObject): CompletableFuture<JsonObject> = call { swaps.quote(wish.toString().toByteArray()) }

    /** Swaps. The future has the event `stopped` or `failed`. */
    fun create(wish: JsonObject): CompletableFuture<JsonObject> = call { swaps.create(wish.toString().toByteArray()) }

    /** Continues a stored order. The future has the event `stopped` or `failed`. */
    fun follow(orderId: String): CompletableFuture<JsonObject> = call { swaps.follow(orderId) }

    /** Refunds a stored order after its timelock. The future has the event `stopped` or `failed`. */
    fun refund(orderId: String): CompletableFuture<JsonObject> = call { swaps.refund(orderId) }

    /** Lists the stored orders. The future has the event `listed` or `failed`. */
    fun list(): CompletableFuture<JsonObject> = call { swaps.list() }

    /** Returns the words of the rescue phrase; null before the first order. */
    fun phrase(): String? = swaps.phrase()

    /** Ends the loop, and gives the store back. What is under way is continued by the next runner. */
    override fun close() {
        isClosed = true
        changed.release()
        if (Thread.currentThread() !== loop) loop.join()
    }

    private fun call(start: () -> ULong): CompletableFuture<JsonObject> = synchronized(calls) {
        if (isClosed) throw IllegalStateException("the runner is closed", end)
        val future = CompletableFuture<JsonObject>()
        // The lock is held until the number is known, because the event may come at once.
        calls[start().toLong()] = future
        changed.release()
        future
    }

    private fun repeatUntilClosed() {
        var why: Throwable = IllegalStateException("the runner is closed")
        try {
            while (!isClosed) {
                changed.drainPermits()
                refused?.let { throw it }
                val output = swaps.poll(now())
                output.withdrawn.forEach(::withdraw)
                output.needs.forEach(::serve)
                JsonParser.parseString(output.events).asJsonArray.forEach { hear(it.asJsonObject) }
                val wait = output.wakeAt?.let { it.toLong() - now().toLong() } ?: LONGEST_WAIT
                changed.tryAcquire(wait.coerceIn(0, LONGEST_WAIT), TimeUnit.MILLISECONDS)
            }
        } catch (error: Throwable) {
            why = error
        } finally {
            end = why
            isClosed = true
            running.values.forEach { it.cancel(true) }
            workers.shutdownNow()
            swaps.close()
            store.close()
            synchronized(calls) { calls.values.forEach { it.completeExceptionally(why) } }
        }
    }

    /** Does what is needed, or has it done. */
    private fun serve(need: Need) {
        val detail = membersOf(need)
        when (detail["kind"].asString) {
            "http" -> send(need, detail)
            "store" -> store(need, detail)
            "consent" -> work(need.id) { ask(need.id, detail) }
            "sign" -> sign(need, detail)
        }
    }

    /** Ends what is not needed any more. A signer is not ended: what it has sent has to be known all the same. */
    private fun withdraw(id: ULong) {
        running.remove(id)?.cancel(true)
        synchronized(signing) {
            signing.values.forEach { atWork ->
                if (atWork.id == id) atWork.isWithdrawn = true
                atWork.waiting.removeAll { it.id == id }
            }
        }
    }

    /** Writes in the loop's own thread, so that one write follows the other. */
    private fun store(need: Need, detail: JsonObject) {
        try {
            store.write(detail["names"].asJsonArray.map { it.asString }.zip(need.bodies))
        } catch (error: Exception) {
            return reply(need.id, "stored" to false, "detail" to words { error.toString() })
        }
        reply(need.id, "stored" to true)
    }

    private fun send(need: Need, detail: JsonObject) {
        val headers = detail["headers"].asJsonArray.map { it.asJsonArray[0].asString to it.asJsonArray[1].asString }
        val sent = try {
            http.send(HttpCall(detail["method"].asString, detail["url"].asString, headers, need.bodies.single()))
        } catch (error: Exception) {
            return reply(need.id, "failed" to "connect", "detail" to error.javaClass.name) // A message could contain the URL.
        }
        running[need.id] = sent
        sent.whenComplete { response: HttpReply?, thrown: Throwable? ->
            running.remove(need.id)
            val error = (thrown as? CompletionException)?.cause ?: thrown
            // What the platform returns is not checked by anybody else.
            if (error == null && response != null && response.status in 100..999) {
                val pairs = response.headers.map { (name, value) -> listOf(name, value) }
                reply(need.id, "status" to response.status, "headers" to pairs, body = response.body)
            } else {
                val kind = if (error is HttpFailure) error.kind else if (error is TimeoutException) "timeout" else "interrupted"
                reply(need.id, "failed" to kind, "detail" to words { detailOf(error) })
            }
        }
    }

    private fun ask(id: ULong, order: JsonObject) {
        val isAgreed = try {
            owner.consents(order)
        } catch (error: Throwable) {
            // A question that is given up is interrupted, which is no fault of the owner's.
            if (running.containsKey(id) && !isClosed) report(error)
            false
        }
        reply(id, "consent" to isAgreed)
    }

    /** Has an order signed, or lets the need wait for the signer that is at work for the same. */
    private fun sign(need: Need, request: JsonObject) {
        val task = "${request["order_id"].asString} ${request["purpose"].asString}"
        val begun = Signing(need.id)
        synchronized(signing) {
            val atWork = signing[task]
            if (atWork != null && System.nanoTime() - atWork.since < LOST) {
                atWork.waiting += need
                return
            }
            atWork?.let { begun.waiting += it.waiting }
            signing[task] = begun
        }
        workers.execute {
            val answer = signed(need.id, request)
            synchronized(signing) {
                // Where another call has begun meanwhile, nobody waits for this one.
                val waiting = if (signing.remove(task, begun)) begun.waiting else emptyList()
                // One transaction is reported once: for a withdrawn need only if no other need waits.
                if (answer != null && (waiting.isEmpty() || !begun.isWithdrawn)) reply(need.id, *answer)
                // What was sent, or why not, holds for the needs that waited, too; a signature does not.
                waiting.forEach { if (answer == null) sign(it, membersOf(it)) else reply(it.id, *answer) }
            }
            changed.release()
        }
    }

    /** Signs. Returns the reply; null if the order was handed back, or is not wanted any more. */
    private fun signed(id: ULong, request: JsonObject): Array<out Pair<String, Any?>>? = try {
        swaps.takeUnsigned(id)?.use { order ->
            if (owner.signs(request, order)) {
                swaps.replySigned(id, order)
                null
            } else {
                arrayOf("sent" to true)
            }
        }
    } catch (error: NothingSent) {
        arrayOf("not_signed" to words { error.message })
    } catch (error: Throwable) {
        val failed = arrayOf<Pair<String, Any?>>("signer_failed" to words { error.message ?: error.toString() })
        codeOf(error)?.let { failed + ("code" to "$it") } ?: failed
    }

    /** Runs what can take long in a thread of its own. A need that is withdrawn interrupts it. */
    private fun work(id: ULong, act: () -> Unit) {
        val task = FutureTask<Unit> {
            try {
                act()
            } finally {
                running.remove(id)
                changed.release()
            }
        }
        running[id] = task
        workers.execute(task)
    }

    /** Replies to a need. A reply that the machine refuses fails the need, and no other: it would stay open without a word. */
    private fun reply(id: ULong, vararg members: Pair<String, Any?>, body: ByteArray = ByteArray(0)) {
        try {
            swaps.reply(id, gson.toJson(members.toMap()), body)
        } catch (error: Exception) {
            try {
                swaps.reply(id, gson.toJson(failureOf(members.first().first)), ByteArray(0))
            } catch (again: Exception) {
                // A runner that is closed has no machine any more.
                if (!isClosed) refused = again
            }
        }
        changed.release()
    }

    /** Returns the shortest reply that says that a need failed, in place of one that begins with this member. */
    private fun failureOf(member: String): Map<String, Any> = when (member) {
        "status", "failed" -> mapOf("failed" to "interrupted")
        "stored" -> mapOf("stored" to false)
        "consent" -> mapOf("consent" to false)
        "not_signed" -> mapOf("not_signed" to UNREADABLE)
        else -> mapOf("signer_failed" to UNREADABLE)
    }

    /** What failed, without the message of a stranger, which could contain the URL. */
    private fun detailOf(error: Throwable?): String? = when (error) {
        null -> "no HTTP status"
        is HttpFailure -> error.message
        else -> error.javaClass.name
    }

    /** Returns the text of foreign code, as JSON may have it. Reading it may fail, too. */
    private fun words(read: () -> String?): String {
        val text = try {
            read()
        } catch (error: Throwable) {
            null
        }
        // Half of a surrogate pair is no character, and becomes a question mark.
        return (text ?: UNREADABLE).take(MAX_WORDS).toByteArray().toString(Charsets.UTF_8)
    }

    private fun codeOf(error: Throwable): Long? = try {
        generateSequence(error) { it.cause }.take(8).filterIsInstance<WalletError>().firstOrNull()?.code
    } catch (unreadable: Throwable) {
        null
    }

    private fun hear(event: JsonObject) {
        try {
            owner.hears(event)
        } catch (error: Exception) {
            report(error) // The swap goes on.
        }
        if (event["event"].asString in ENDS) synchronized(calls) { calls.remove(event["call"].asLong) }?.complete(event)
    }

    private fun report(error: Throwable) = try {
        Thread.currentThread().run { uncaughtExceptionHandler.uncaughtException(this, error) }
    } catch (unreadable: Throwable) {
        // Handlers print the error, whose text can be what fails.
    }

    /** A signer at work: for which need, whether that was withdrawn, since when ([System.nanoTime]), and the needs that wait for the same. */
    private class Signing(val id: ULong) {
        var isWithdrawn = false
        val since = System.nanoTime()
        val waiting = CopyOnWriteArrayList<Need>()
    }

    private companion object {
        /** Nanoseconds after which a signer at work counts as lost: a redemption that nobody signs loses the funds, and two do no harm. */
        val LOST = TimeUnit.MINUTES.toNanos(10)
        /** Milliseconds. A device that slept, or a clock that was set, is noticed after that. */
        const val LONGEST_WAIT = 5_000L
        /** The longest text of foreign code, as in the other languages. */
        const val MAX_WORDS = 1_024
        const val UNREADABLE = "the error has no text that can be read"
        val ENDS = setOf("quoted", "listed", "stopped", "failed")
        val gson = Gson()

        fun open(settings: Settings, store: Store): Swaps = try {
            with(settings) { Swaps.open(options, registry, policy, nodes, store.load(), store.place, now()) }
        } catch (error: Throwable) {
            store.close()
            throw error
        }

        fun membersOf(need: Need): JsonObject = JsonParser.parseString(need.detail).asJsonObject

        fun now(): ULong = System.currentTimeMillis().toULong()
    }
}
