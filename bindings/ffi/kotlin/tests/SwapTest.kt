import com.google.gson.JsonObject
import countersign.UnsignedOrder
import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.attribute.PosixFilePermission.OWNER_EXECUTE
import java.nio.file.attribute.PosixFilePermission.OWNER_READ
import java.nio.file.attribute.PosixFilePermission.OWNER_WRITE
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit
import kotlin.random.Random
import runner.FileStore
import runner.Http
import runner.JvmHttp
import runner.NothingSent
import runner.Owner
import runner.SwapRunner
import runner.Store
import runner.WalletError

private const val FROM = "base:usdc"
private const val TO = "litecoin:ltc"

/** Whole swaps against the sandbox. None where its program is not built. */
fun swapTests(checkout: File): Map<String, () -> Unit> {
    val program = sandboxProgram(checkout)
    if (program == null) {
        println("skipped: whole swaps: the sandbox is not built (cargo build --manifest-path sandbox/Cargo.toml), and COUNTERSIGN_SANDBOX is not set")
        return emptyMap()
    }
    val lies = listOf(
        Lie("evm-redeemer", "unknown_redeemer"),
        Lie("evm-amount", "amount_mismatch"),
        Lie("record-hash", "record_mismatch"),
        Lie("endpoint-denies", "complete"),
        Lie("service-gone", "complete"),
    )
    fun test(chains: String = "base,litecoin", act: (Sandbox) -> Unit): () -> Unit = { Sandbox(program, chains).use(act) }
    return mapOf(
        "swaps of all families complete side by side" to test("base,litecoin,tron,solana,starknet,sui", ::completes),
        "the README's example swaps" to test(act = ::readme),
    ) + lies.associate { lie -> "the lie ${lie.name} ends as it must" to test { endsAs(lie, it) } } + mapOf(
        "a quote that is too low is not taken" to test(act = ::refusesPoorQuote),
        "the secret stays while the solver pays too little, and the payment comes back" to test(act = ::isRefunded),
        "a declined order is not paid" to test(act = ::declines),
        "an owner who fails pays nothing" to test(act = ::fails),
        "a signer whose error is no text fails its own swap alone" to test("base,litecoin,tron,solana", ::failsAlone),
        "an older index that is put back is another place" to test(act = ::noticesRollback),
        "a folder that another host has locked is not opened" to test(act = ::respectsLocks),
        "what is not stored is not done" to test(act = ::storesFirst),
        "a runner that is closed gives the store to the next one" to test(act = ::isContinued),
        "a swap whose process is killed is resumed" to test(act = ::survivesKills),
        "errors in what is asked for" to test(act = ::refusesWishes),
    )
}

private fun CompletableFuture<JsonObject>.result(): JsonObject = get(300, TimeUnit.SECONDS)

/** How a call ended: the code of its error, or the reason. */
private fun JsonObject.end(): String = this["error"]?.takeIf { it.isJsonObject }?.asJsonObject?.get("code")?.asString ?: this["reason"].asString

private fun start(sandbox: Sandbox, owner: Owner = LocalOwner(sandbox.user), store: Store = FileStore(sandbox.folder("swaps")), http: Http = JvmHttp()) =
    SwapRunner(sandbox.user.settings, store, http, owner)

private fun completes(sandbox: Sandbox) {
    val user = sandbox.user
    val routes = listOf(FROM to TO, "tron:usdt" to "solana:sol", "starknet:strk" to "sui:sui")
    val paid = listOf(TO, "solana:sol")
    val before = paid.map(user::balance)
    start(sandbox).use { runner ->
        val quoted = runner.quote(user.wish(FROM, TO).apply { remove("receive_at") }).result()
        check(quoted["receive"].asJsonObject["number"].asLong > 0) { quoted }
        val ends = routes.map { (from, to) -> runner.create(user.wish(from, to)) }
        ends.forEach { equal(it.result().end(), "complete", "$it") }
        val listed = runner.list().result()["orders"].asJsonArray
        equal(listed.map { it.asJsonObject["outcome"].asString }, routes.map { "complete" }, "outcomes")
        equal(runner.phrase()!!.split(' ').size, 12, "words")
    }
    paid.zip(before).forEach { (asset, before) -> check(user.balance(asset) > before) { "$asset: nothing was received" } }
    // Nothing that others could read.
    Files.walk(sandbox.folder("swaps")).use { paths ->
        val rights = paths.toList().flatMap { Files.getPosixFilePermissions(it) }.toSet()
        equal(rights, setOf(OWNER_READ, OWNER_WRITE, OWNER_EXECUTE), "rights")
    }
}

private fun readme(sandbox: Sandbox) {
    val user = sandbox.user
    val end = swap(user.settings, sandbox.folder("swaps"), user.wish(FROM, TO), { it["summary"].asJsonArray.size() > 0 }) { chain, order ->
        order.sign(user.key(chain))
    }
    equal(end, "complete", "the end")
}

private class Lie(val name: String, val end: String)

private fun endsAs(lie: Lie, sandbox: Sandbox) {
    sandbox.post("lies?name=${lie.name}&on=true")
    val before = listOf(FROM, TO).map(sandbox.user::balance)
    start(sandbox).use { equal(it.create(sandbox.user.wish(FROM, TO)).result().end(), lie.end, lie.name) }
    val (paid, received) = listOf(FROM, TO).map(sandbox.user::balance).zip(before) { after, before -> after - before }
    if (lie.end == "complete") check(received > 0) { "nothing was received" } else equal(paid, 0L, "paid")
}

private fun refusesPoorQuote(sandbox: Sandbox) = start(sandbox).use { runner ->
    val wish = sandbox.user.wish(FROM, TO)
    val quoted = runner.quote(wish.deepCopy().apply { remove("receive_at") }).result()
    sandbox.post("lies?name=service-poor-quote&on=true")
    wish.add("at_least", quoted["receive"].asJsonObject["number"])
    equal(runner.create(wish).result().end(), "quote_too_low", "the end")
}

private fun isRefunded(sandbox: Sandbox) {
    sandbox.post("lies?name=solver-pays-less&on=true")
    val before = sandbox.user.balance(FROM)
    val owner = LocalOwner(sandbox.user)
    val http = JvmHttp()
    val sent = ConcurrentLinkedQueue<String>()
    val listening = Http { call ->
        if (call.url.startsWith(sandbox.user.service)) sent += call.url + call.body?.decodeToString()
        http.send(call)
    }
    start(sandbox, owner, http = listening).use { runner ->
        val end = runner.create(sandbox.user.wish(FROM, TO))
        owner.await("status") { it["message"].asString.startsWith("paid;") }
        Thread.sleep(2_000)
        val files = sandbox.folder("swaps").toFile().walk().toList()
        val secret = files.single { it.name == "secret" }.readText()
        check(sent.isNotEmpty() && sent.none { secret.trim() in it }) { "the secret was sent" }
        check(sandbox.user.balance(FROM) < before) { "nothing was paid" }
        sandbox.post("mine?chain=base&blocks=43202")
        equal(end.result().end(), "refunded", "the end")
    }
    equal(sandbox.user.balance(FROM), before, "the balance")
}

private fun declines(sandbox: Sandbox) {
    val before = sandbox.user.balance(FROM)
    start(sandbox, LocalOwner(sandbox.user, agrees = false)).use { runner ->
        equal(runner.create(sandbox.user.wish(FROM, TO)).result().end(), "declined", "the end")
        val order = runner.list().result()["orders"].asJsonArray.single().asJsonObject
        check(!order["may_be_paid"].asBoolean) { order }
    }
    equal(sandbox.user.balance(FROM), before, "the balance")
}

/** Errors that are no exceptions, too: nobody would reply otherwise. */
private fun fails(sandbox: Sandbox) {
    val signers = listOf<() -> Throwable>({ NothingSent("the device is locked") }, { WalletError(4001, "no") }, { IllegalStateException(WalletError(4001, "no")) })
    val owners: List<Owner> = signers.map { thrown ->
        object : Owner by LocalOwner(sandbox.user) {
            override fun signs(request: JsonObject, order: UnsignedOrder): Boolean = throw thrown()
        }
    } + listOf<() -> Throwable>({ StackOverflowError() }, { Unreadable() }).map { thrown ->
        object : Owner by LocalOwner(sandbox.user) {
            override fun consents(order: JsonObject): Boolean = throw thrown()
        }
    }
    owners.forEachIndexed { place, owner ->
        start(sandbox, owner, FileStore(sandbox.folder("swaps-$place"))).use { runner ->
            val end = runner.create(sandbox.user.wish(FROM, TO)).result().end()
            equal(end, if (place < signers.size) "not_signed" else "declined", "the end")
            check(!runner.list().result()["orders"].asJsonArray.single().asJsonObject["may_be_paid"].asBoolean)
        }
    }
}

/** An error whose text cannot be read. */
private class Unreadable : RuntimeException() {
    override val message: String get() = throw IllegalStateException()
    override val cause: Throwable get() = throw IllegalStateException()
    override fun toString(): String = throw IllegalStateException()
}

/** Half of a surrogate pair is in no JSON. The other swap has a prompt open meanwhile. */
private fun failsAlone(sandbox: Sandbox) {
    val user = sandbox.user
    val errors = listOf<() -> Throwable>(
        { IllegalStateException("\ud800") }, { NothingSent("\ud800".repeat(2_000)) }, { WalletError(4001, "x\udc00") }, { Unreadable() },
    )
    for ((place, thrown) in errors.withIndex()) {
        val (isAsked, isAllowed) = CompletableFuture<Unit>() to CompletableFuture<Unit>()
        val local = LocalOwner(user)
        val owner = object : Owner by local {
            override fun signs(request: JsonObject, order: UnsignedOrder): Boolean {
                if (request["chain"].asString == "tron") throw thrown()
                isAsked.complete(Unit)
                isAllowed.get()
                return local.signs(request, order)
            }
        }
        start(sandbox, owner, FileStore(sandbox.folder("failing-$place"))).use { runner ->
            val followed = runner.create(user.wish(FROM, TO))
            isAsked.get(60, TimeUnit.SECONDS)
            equal(runner.create(user.wish("tron:usdt", "solana:sol")).result().end(), "not_signed", "error $place")
            isAllowed.complete(Unit)
            equal(followed.result().end(), "complete", "the other swap, error $place")
        }
    }
}

private fun noticesRollback(sandbox: Sandbox) {
    val folder = sandbox.folder("rollback")
    fun place() = FileStore(folder).use { it.place }
    fun write(text: String) = FileStore(folder).use { it.write(listOf("index" to text.toByteArray())) }
    write("1 0 place\n")
    val first = place()
    val (index, mark) = listOf("index", ".host-mark").map(folder::resolve)
    val old = Files.readAllBytes(index)
    write("2 0 place\n")
    equal(place(), first, "the place")
    // With the content, the times and the mark of the older one.
    val (kept, times) = Files.readAllBytes(mark) to Files.getLastModifiedTime(index)
    Files.write(index, old)
    Files.setLastModifiedTime(index, times)
    Files.write(mark, kept)
    check(place() != first) { "the older index was not noticed" }
}

private fun respectsLocks(sandbox: Sandbox) {
    val folder = sandbox.folder("locked")
    FileStore(folder).close()
    val other = ProcessBuilder("flock", "-s", "$folder/.host-lock", "sh", "-c", "echo held; exec cat").start()
    equal(other.inputStream.bufferedReader().readLine(), "held", "the other")
    try {
        FileStore(folder)
        throw AssertionError("two hosts have one folder")
    } catch (ignored: IOException) {
    }
    other.outputStream.close()
    other.waitFor()
    FileStore(folder).use {
        equal(ProcessBuilder("flock", "-n", "$folder/.host-lock", "true").start().waitFor(), 1, "the other's status")
    }
    FileStore(folder).close()
}

private fun storesFirst(sandbox: Sandbox) {
    val files = FileStore(sandbox.folder("swaps"))
    val full = object : Store by files {
        override fun write(documents: List<Pair<String, ByteArray?>>): Unit = throw IOException("no space left")
    }
    start(sandbox, store = full).use { runner ->
        val end = runner.create(sandbox.user.wish(FROM, TO)).result()
        check(end.end() == "store_failed" && "no space left" in end.toString()) { end }
    }
}

private fun isContinued(sandbox: Sandbox) {
    val owner = LocalOwner(sandbox.user)
    val end = start(sandbox, owner).use { runner ->
        runner.create(sandbox.user.wish(FROM, TO)).also {
            owner.await("created")
            try {
                FileStore(sandbox.folder("swaps"))
                throw AssertionError("two runners have one store")
            } catch (ignored: IOException) {
            }
        }
    }
    check(end.isCompletedExceptionally) { "the first runner has ended the swap: ${end.get()}" }
    start(sandbox).use { equal(it.follow(owner.await("created")["order_id"].asString).result().end(), "complete", "the end") }
}

/** Swaps in a process of its own, and prints a line after each write. */
object SwapProcess {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val (home, folder) = arguments
        val user = User(File(home))
        val files = FileStore(Path.of(folder))
        val told = object : Store by files {
            override fun write(documents: List<Pair<String, ByteArray?>>) = files.write(documents).also { println("written") }
        }
        SwapRunner(user.settings, told, JvmHttp(), LocalOwner(user)).use { println(it.create(user.wish(FROM, TO)).result().end()) }
    }
}

private fun survivesKills(sandbox: Sandbox) {
    val seed = System.nanoTime()
    val random = Random(seed)
    val classes = System.getProperty("java.class.path")
    repeat(4) { round ->
        val folder = sandbox.folder("swaps-$round")
        // A whole swap has some more writes.
        val kept = random.nextInt(3, 16)
        val what = "seed $seed, killed after write $kept"
        val child = ProcessBuilder(File(System.getProperty("java.home"), "bin/java").path, "-cp", classes, "SwapProcess", sandbox.user.home.path, "$folder")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start()
        val lines = child.inputStream.bufferedReader()
        repeat(kept) { equal(lines.readLine(), "written", what) }
        try {
            FileStore(folder)
            throw AssertionError("two processes have one store")
        } catch (ignored: IOException) {
        }
        // SIGKILL.
        child.destroyForcibly().waitFor()
        start(sandbox, store = FileStore(folder)).use { runner ->
            val orders = runner.list().result()["orders"].asJsonArray.map { it.asJsonObject["order_id"].asString }
            val end = if (orders.isEmpty()) runner.create(sandbox.user.wish(FROM, TO)) else runner.follow(orders.single())
            equal(end.result().end(), "complete", what)
        }
    }
}

private fun refusesWishes(sandbox: Sandbox) = start(sandbox).use { runner ->
    val user = sandbox.user
    for ((member, value) in listOf("amount" to "1.5", "to" to "litecoin:nothing", "receive_at" to "0x1")) {
        try {
            runner.create(user.wish(FROM, TO).apply { addProperty(member, value) })
            throw AssertionError("$member: not refused")
        } catch (refused: countersign.CountersignException.Failure) {
            equal(refused.at, "/$member", member)
        }
    }
}
