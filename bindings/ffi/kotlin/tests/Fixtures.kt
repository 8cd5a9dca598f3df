import com.google.gson.JsonElement
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import countersign.Order
import countersign.Registry
import java.io.File

/** A case of `fixtures/accept`. Numbers keep their spelling: Gson holds them as text. */
class Case(line: String) {
    private val members: JsonObject = JsonParser.parseString(line).asJsonObject
    val id: String = members["id"].asString
    val request = bytes("request")
    val response = bytes("response")
    val record = members["order"]?.takeUnless(JsonElement::isJsonNull)?.let { bytes("order") }
    val key: String? = members["wallet"].asJsonObject["secret_key"]?.asString
    val wallet = bytes("wallet")
    val expect: JsonObject = members["expect"].asJsonObject
    val family: String = expect["family"].asString

    private fun bytes(name: String) = members[name].toString().toByteArray()

    fun verify(registry: Registry): Order = Order.verify(request, response, registry, record = record)

    /** The expected value at a path of member names below the artefacts. */
    fun artefact(vararg path: String): String =
        path.fold(expect["artefacts"]) { value, name -> value.asJsonObject[name] }.asString
}

/** The fixtures of the project. */
class Fixtures(private val folder: File) {
    val registryText = File(folder, "registry.json").readBytes()
    val registry = Registry(registryText)
    val cases = listOf("bitcoin", "evm", "solana", "starknet", "sui", "tron")
        .flatMap { family -> File(folder, "accept/$family.jsonl").readLines() }
        .map(::Case)

    /** The lines with the recorded conversations of a family's reader. */
    fun readers(family: String): List<String> = File(folder, "readers/$family.jsonl").readLines()

    fun case(id: String): Case = cases.first { it.id == id }
}
