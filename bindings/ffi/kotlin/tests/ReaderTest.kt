import com.google.gson.JsonElement
import com.google.gson.JsonNull
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import countersign.ChainAnswer
import countersign.ChainRequest
import countersign.Leg
import countersign.Quorum
import countersign.Reader
import countersign.Record
import countersign.splitBatch

/** A recorded conversation of a reader with a chain: `fixtures/readers`. */
private class Conversation(line: String) {
    private val members: JsonObject = JsonParser.parseString(line).asJsonObject
    val name: String = members["case"].asString
    val fixture: String = members["fixture"].asString
    val protocol: String = members["protocol"].asString
    val now: ULong = members["now"].asLong.toULong()
    val rounds = members["rounds"].asJsonArray.map { it.asJsonObject }
    val outcome: JsonObject = members["outcome"].asJsonObject
    val left: ULong? = outcome["verdict"].asJsonObject["left"]?.asLong?.toULong()
    val code: String? = outcome["verdict"].asJsonObject["code"]?.asString

    /** The answer to a request that the conversation has, in whatever round. */
    fun answer(request: ChainRequest): ChainAnswer = rounds
        .flatMap { it["requests"].asJsonArray.zip(it["answers"].asJsonArray) }
        .first { (asked, _) -> written(request) == asked }.second.asJsonObject.toAnswer()
}

private fun JsonObject.toAnswer(): ChainAnswer = when {
    has("result") -> ChainAnswer.Result(this["result"].asString)
    has("error") -> ChainAnswer.Error(this["error"].toString())
    has("status") -> ChainAnswer.Http(this["status"].asInt.toUShort(), unhex(this["body"].asString), this["grpc_status"]?.asString)
    else -> ChainAnswer.Failed(this["failed"].asString, this["detail"].asString)
}

private fun unhex(text: String) = text.removePrefix("0x").chunked(2).map { it.toInt(16).toByte() }.toByteArray()

/** A request as the conversations have it. */
private fun written(request: ChainRequest): JsonObject {
    val members = mapOf(
        "kind" to request.kind, "method" to request.method, "params" to request.params, "path" to request.path,
        "content_type" to request.contentType, "body" to request.body?.let { "0x" + hex(it) },
    )
    return JsonObject().apply { members.forEach { (name, value) -> if (value == null) add(name, JsonNull.INSTANCE) else addProperty(name, value) } }
}

private fun play(record: Record, conversation: Conversation, endpoint: String): Reader {
    val reader = record.reader(Leg.DESTINATION, endpoint, protocol = conversation.protocol)
    for (round in conversation.rounds) {
        val requests = reader.next()!!
        equal(requests.map<ChainRequest, JsonElement>(::written), round["requests"].asJsonArray.toList(), "${conversation.name}: requests")
        reader.answer(round["answers"].asJsonArray.map { it.asJsonObject.toAnswer() })
    }
    equal(reader.next(), null, "${conversation.name}: end")
    return reader
}

private fun openRecord(fixtures: Fixtures, conversation: Conversation): Record {
    val case = fixtures.case(conversation.fixture)
    return Record.verify(case.request, case.response, case.record!!, fixtures.registry)
}

/** Readers and quorums. */
fun readerTests(fixtures: Fixtures): Map<String, () -> Unit> {
    fun conversations(family: String) = fixtures.readers(family).map(::Conversation)
    return mapOf(
        "every recorded conversation has its requests and its outcome" to {
            for (conversation in listOf("bitcoin", "evm", "solana", "starknet", "sui", "tron").flatMap(::conversations)) {
                openRecord(fixtures, conversation).use { record ->
                    play(record, conversation, "one").use { reader ->
                        val fault = conversation.outcome["fault"].takeUnless(JsonElement::isJsonNull)?.asString
                        equal(reader.fault()?.code, fault, "${conversation.name}: fault")
                        Quorum(listOf("one"), 1U).use { quorum ->
                            quorum.hear(reader)
                            check(quorum.isSettled())
                            if (conversation.left == null) {
                                val error = refused(conversation.code!!, conversation.name) { record.judge(quorum, conversation.now) }
                                equal(error.blame, "chain", "blame")
                            } else {
                                equal(record.judge(quorum, conversation.now).left, conversation.left, conversation.name)
                                equal(record.state(Leg.DESTINATION, quorum).state, "locked", conversation.name)
                            }
                        }
                    }
                }
            }
        },
        "the README's function judges three endpoints, of which one fails" to {
            val conversation = conversations("evm").first { it.name == "funded" }
            openRecord(fixtures, conversation).use { record ->
                val proof = funded(record, listOf("one", "two", "three"), 2U, conversation.now) { endpoint, request ->
                    if (endpoint == "two") ChainAnswer.Failed("timeout", "") else conversation.answer(request)
                }
                equal(proof.left, conversation.left, "left")
            }
        },
        "misuse of a reader is refused and changes nothing" to {
            val conversation = conversations("evm").first { it.name == "funded" }
            openRecord(fixtures, conversation).use { record ->
                record.reader(Leg.DESTINATION, "one").use { reader ->
                    val requests = reader.next()
                    refused("usage", "no answers") { reader.answer(emptyList()) }
                    equal(reader.next(), requests, "requests")
                    Quorum(listOf("one"), 1U).use { it.hear(reader); check(!it.isSettled()) }
                }
                refused("usage", "protocol") { record.reader(Leg.DESTINATION, "one", protocol = "grpc") }
            }
            refused("wrong_type", "quorum") { Quorum(listOf("one", "two"), 1U) }
            equal(splitBatch(200U, """[{"id":1,"result":2},{"id":0,"result":1}]""".toByteArray(), 2U), listOf(ChainAnswer.Result("1"), ChainAnswer.Result("2")), "batch")
        },
    )
}
