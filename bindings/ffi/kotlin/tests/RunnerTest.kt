import com.google.gson.JsonObject
import com.google.gson.JsonParser
import countersign.ChainRequest
import countersign.Need
import countersign.NoHandle
import countersign.Output
import countersign.StoredDocument
import countersign.Swaps
import countersign.UnsignedOrder
import java.io.IOException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit
import runner.Http
import runner.HttpReply
import runner.NothingSent
import runner.Owner
import runner.Store
import runner.SwapRunner

/** The runner around a machine that needs what a test says. */
fun runnerTests(): Map<String, () -> Unit> = mapOf(
    "a signer at work is not asked again for the same" to ::asksOnce,
    "a signature is for the order that it was asked for" to ::signsEach,
    "a question that is given up is no fault of the owner's" to ::reportsNoInterruption,
    "no message of an HTTP client is passed on" to ::hidesUrls,
    "what can contain a secret is not printed" to ::printsNoSecret,
)

private const val KEY = "https://node.example/v3/key"

/** A machine that notes the replies. */
private class Script : Swaps(NoHandle) {
    private var needs = listOf<Need>()
    private var withdrawn = listOf<ULong>()
    val replies = LinkedBlockingQueue<Pair<ULong, JsonObject>>()

    @Synchronized
    override fun poll(now: ULong): Output = Output(needs, withdrawn, "[]", null).also {
        needs = emptyList()
        withdrawn = emptyList()
    }

    override fun list(): ULong = 0u

    override fun reply(id: ULong, reply: String, body: ByteArray) = replies.add(id to JsonParser.parseString(reply).asJsonObject)

    override fun takeUnsigned(id: ULong) = UnsignedOrder(NoHandle)

    override fun replySigned(id: ULong, order: UnsignedOrder) = replies.add(id to JsonObject().apply { addProperty("signed", true) })

    @Synchronized
    fun needs(id: ULong, detail: String) {
        needs = needs + Need(id, id, detail, listOf(null))
    }

    fun signature(id: ULong, order: String, purpose: String = "redemption") =
        needs(id, """{"kind": "sign", "order_id": "$order", "purpose": "$purpose", "chain": "base", "account": "0x"}""")

    /** One that was not told yet is simply not told. */
    @Synchronized
    fun withdraws(id: ULong) {
        if (needs.none { it.id == id }) withdrawn = withdrawn + id
        needs = needs.filter { it.id != id }
    }

    /** The next replies, by the numbers of their needs. */
    fun replies(count: Int) = List(count) { replies.poll(10, TimeUnit.SECONDS) ?: throw AssertionError("no reply") }.sortedBy { it.first }.map { "$it" }
}

/** A wallet that is done when the test says so. */
private class SlowWallet(val end: () -> Boolean) : Owner {
    val asked = LinkedBlockingQueue<String>()
    val go = Semaphore(0)

    override fun consents(order: JsonObject) = true

    override fun signs(request: JsonObject, order: UnsignedOrder): Boolean {
        asked += request["order_id"].asString + " " + request["purpose"].asString
        check(go.tryAcquire(30, TimeUnit.SECONDS))
        return end()
    }

    override fun hears(event: JsonObject) = Unit

    fun asked(count: Int) = List(count) { asked.poll(10, TimeUnit.SECONDS) ?: throw AssertionError("not asked") }.sorted()
}

private object NoStore : Store {
    override val place = ""

    override fun load() = emptyList<StoredDocument>()

    override fun write(documents: List<Pair<String, ByteArray?>>) = Unit

    override fun close() = Unit
}

private fun run(owner: Owner, http: Http = Http { CompletableFuture.completedFuture(HttpReply(200, emptyList(), ByteArray(0))) }, act: (Script, () -> Unit) -> Unit) {
    val machine = Script()
    // A call wakes the loop.
    SwapRunner(machine, NoStore, http, owner).use { runner -> act(machine) { runner.list() } }
}

private fun asksOnce() {
    val ends = listOf<Pair<() -> Boolean, String>>({ false } to """{"sent":true}""", { throw NothingSent("no") } to """{"not_signed":"no"}""")
    for ((end, expected) in ends) {
        val wallet = SlowWallet(end)
        run(wallet) { machine, wake ->
            machine.signature(1u, "a")
            wake()
            equal(wallet.asked(1), listOf("a redemption"), "asked")
            // The machine gives the signature up, and asks again.
            for (id in 1uL..20uL) {
                machine.withdraws(id)
                machine.signature(id + 1u, "a")
                wake()
                Thread.sleep(5)
            }
            machine.signature(30u, "b")
            machine.signature(31u, "a", "refund")
            wake()
            equal(wallet.asked(2), listOf("a refund", "b redemption"), "asked")
            equal(wallet.asked.poll(100, TimeUnit.MILLISECONDS), null, "asked again")
            wallet.go.release(3)
            // One transaction is reported once: for the need that waits, and not for the withdrawn one, too.
            equal(machine.replies(3), listOf(21, 30, 31).map { "($it, $expected)" }, "replies")
            machine.signature(40u, "a")
            wake()
            wallet.go.release()
            equal(machine.replies(1), listOf("(40, $expected)"), "once it is done")
            wallet.asked(1)
            // What was sent is reported for a withdrawn need for which no other waits.
            machine.signature(50u, "a")
            wake()
            wallet.asked(1)
            machine.withdraws(50u)
            wake()
            wallet.go.release()
            equal(machine.replies(1), listOf("(50, $expected)"), "withdrawn")
        }
    }
}

private fun signsEach() {
    val wallet = SlowWallet { true }
    run(wallet) { machine, wake ->
        (1uL..3uL).forEach { machine.signature(it, "a") }
        wake()
        for (id in 1..3) {
            wallet.asked(1)
            equal(wallet.asked.poll(100, TimeUnit.MILLISECONDS), null, "asked at once")
            wallet.go.release()
            equal(machine.replies(1), listOf("""($id, {"signed":true})"""), "replies")
        }
    }
}

private fun reportsNoInterruption() {
    val (reported, asked) = LinkedBlockingQueue<String>() to Semaphore(0)
    val owner = object : Owner by SlowWallet({ true }) {
        override fun consents(order: JsonObject): Boolean {
            asked.release()
            if (order.has("fails")) throw IllegalStateException("no dialog")
            Thread.sleep(30_000)
            return true
        }
    }
    Thread.setDefaultUncaughtExceptionHandler { _, error -> reported += "${error.message}" }
    try {
        run(owner) { machine, wake ->
            machine.needs(1u, """{"kind": "consent"}""")
            wake()
            check(asked.tryAcquire(10, TimeUnit.SECONDS))
            machine.withdraws(1u)
            machine.needs(2u, """{"kind": "consent", "fails": true}""")
            wake()
            equal(machine.replies(2), listOf("""(1, {"consent":false})""", """(2, {"consent":false})"""), "replies")
            equal(reported.poll(10, TimeUnit.SECONDS), "no dialog", "reported")
            equal(reported.poll(100, TimeUnit.MILLISECONDS), null, "reported")
        }
    } finally {
        Thread.setDefaultUncaughtExceptionHandler(null)
    }
}

private fun hidesUrls() {
    val failures = listOf<Http>(
        Http { CompletableFuture<HttpReply>().apply { completeExceptionally(IOException("no route to $KEY")) } },
        Http { throw IOException("no route to $KEY") },
    )
    for (http in failures) {
        run(SlowWallet { true }, http) { machine, wake ->
            machine.needs(1u, """{"kind": "http", "method": "GET", "url": "$KEY", "headers": []}""")
            wake()
            val reply = machine.replies(1).single()
            check("IOException" in reply && "key" !in reply) { reply }
        }
    }
}

private fun printsNoSecret() {
    val need = Need(1u, 2u, """{"url": "$KEY"}""", listOf(KEY.toByteArray()))
    val request = ChainRequest("json_rpc", "send", """["$KEY"]""", null, null, KEY.toByteArray())
    for (text in listOf("$need", "$request", "${Output(listOf(need), emptyList(), "[]", null)}")) check("key" !in text) { text }
    check("id: 1" in "$need" && "send" in "$request") { "$need $request" }
}
