import com.google.gson.JsonArray
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import countersign.UnsignedOrder
import java.io.File
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import java.nio.file.Files
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit
import runner.Owner
import runner.Settings

/** The program of the sandbox: `COUNTERSIGN_SANDBOX`, or what the checkout has built; null where there is none. */
fun sandboxProgram(checkout: File): File? =
    System.getenv("COUNTERSIGN_SANDBOX")?.takeIf(String::isNotEmpty)?.let(::File)
        ?: listOf("release", "debug").map { File(checkout, "sandbox/target/$it/countersign-sandbox") }.find(File::isFile)

private val client = HttpClient.newHttpClient()

private fun exchange(request: HttpRequest.Builder): JsonObject =
    JsonParser.parseString(client.send(request.build(), BodyHandlers.ofString()).body()).asJsonObject

fun json(vararg members: Pair<String, String>) = JsonObject().apply { members.forEach { (name, value) -> addProperty(name, value) } }

/** A sandbox with these chains, on free ports. */
class Sandbox(program: File, chains: String) : AutoCloseable {
    private val folder = Files.createTempDirectory("countersign-sandbox-").toFile()
    private val process = ProcessBuilder(program.path, "--port", "0", "--json", "--dir", folder.path, "--chains", chains)
        .redirectError(ProcessBuilder.Redirect.INHERIT).start()
    private val service: String
    val user: User

    init {
        val line = process.inputStream.bufferedReader().readLine() ?: throw AssertionError("the sandbox has not started")
        service = JsonParser.parseString(line).asJsonObject["service"].asString
        user = User(folder)
    }

    /** Turns the sandbox, for example `post("lies?name=evm-redeemer&on=true")`. */
    fun post(what: String) {
        exchange(HttpRequest.newBuilder(URI("$service/sandbox/$what")).POST(BodyPublishers.noBody()))
    }

    /** A folder that is removed with the sandbox. */
    fun folder(name: String) = File(folder, name).toPath()

    override fun close() {
        process.destroyForcibly().waitFor(10, TimeUnit.SECONDS)
        folder.deleteRecursively()
    }
}

/** The sandbox's user: what a wallet has. */
class User(val home: File) {
    private val config = read("config.json")
    private val nodes = read("nodes.json")
    val service: String = config["base_url"].asString

    val settings = Settings(
        options = JsonObject().apply {
            add("service", config["base_url"])
            add("app_id", config["app_id"])
            add("accounts", config["owners"])
            addProperty("relayer", true)
            addProperty("sign_only", true)
            addProperty("poll_ms", 100)
        }.toString().toByteArray(),
        registry = File(home, "registry.json").readBytes(),
        nodes = File(home, "nodes.json").readBytes(),
    )

    private fun read(name: String) = JsonParser.parseString(File(home, name).readText()).asJsonObject

    fun account(chain: String): String = config["owners"].asJsonObject[chain].asString

    fun key(chain: String): String = File(home, (config["key_files"].asJsonObject[chain] ?: config["key_file"]).asString).readText().trim()

    fun wish(from: String, to: String) =
        json("from" to from, "to" to to, "amount" to AMOUNTS.getValue(from), "receive_at" to account(to.substringBefore(':')))

    /** What the account has on a chain itself, in base units; without what is locked. */
    fun balance(asset: String): Long {
        val chain = asset.substringBefore(':')
        val (url, account) = nodes[chain].asJsonArray[0].asJsonObject["url"].asString to account(chain)
        return when (asset) {
            "base:usdc" -> {
                val assets = read("registry.json")["assets"].asJsonArray.map { it.asJsonObject }
                val token = assets.first { it["id"].asString == asset }["token"].asJsonObject["address"].asString
                val call = json("to" to token, "data" to "0x70a08231" + account.removePrefix("0x").padStart(64, '0'))
                val parameters = JsonArray().apply { add(call); add("latest") }
                rpc(url, "eth_call", parameters)["result"].asString.removePrefix("0x").toLong(16)
            }
            "litecoin:ltc" -> {
                val stats = exchange(HttpRequest.newBuilder(URI("$url/address/$account")))["chain_stats"].asJsonObject
                stats["funded_txo_sum"].asLong - stats["spent_txo_sum"].asLong
            }
            "solana:sol" -> rpc(url, "getBalance", JsonArray().apply { add(account) })["result"].asJsonObject["value"].asLong
            else -> throw IllegalArgumentException(asset)
        }
    }

    private fun rpc(url: String, method: String, parameters: JsonArray): JsonObject {
        val call = json("jsonrpc" to "2.0", "method" to method).apply { addProperty("id", 1); add("params", parameters) }
        val request = HttpRequest.newBuilder(URI(url)).header("content-type", "application/json")
        return exchange(request.POST(BodyPublishers.ofString(call.toString())))
    }

    private companion object {
        val AMOUNTS = mapOf("base:usdc" to "1.5 usdc", "litecoin:ltc" to "0.3 ltc", "tron:usdt" to "40 usdt", "starknet:strk" to "300 strk")
    }
}

/** An owner with local keys, who agrees to everything or to nothing. */
class LocalOwner(private val user: User, private val agrees: Boolean = true) : Owner {
    private val events = CopyOnWriteArrayList<JsonObject>()

    override fun consents(order: JsonObject): Boolean {
        check(!order["summary"].asJsonArray.isEmpty) { "nothing is shown: $order" }
        return agrees
    }

    override fun signs(request: JsonObject, order: UnsignedOrder): Boolean {
        order.sign(user.key(request["chain"].asString))
        return true
    }

    override fun hears(event: JsonObject) {
        events += event
    }

    /** Waits for an event. */
    fun await(name: String, matches: (JsonObject) -> Boolean = { true }): JsonObject {
        repeat(6_000) {
            events.find { it["event"].asString == name && matches(it) }?.let { return it }
            Thread.sleep(50)
        }
        throw AssertionError("waited in vain for $name; $events")
    }
}
