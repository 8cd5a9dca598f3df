import com.google.gson.JsonParser
import countersign.Order
import countersign.Policy
import countersign.Record
import countersign.Leg
import countersign.Recovery
import countersign.SignedOrder
import countersign.UnsignedOrder
import java.util.Base64

/** A case, a change of its wallet context that gives another transaction, the code of its refusal, and the names of the requests. */
private class Returned(val id: String, val from: String, val to: String, val code: String, val names: List<String>)

/** Signs, and returns the bytes that signers of the family return. */
private fun signedBytes(order: Order, wallet: ByteArray, key: String): List<ByteArray> =
    order.prepare(wallet).use { unsigned ->
        unsigned.sign(key)
        val deposit = JsonParser.parseString(unsigned.artefacts()).asJsonObject["deposit"]
        if (deposit != null) {
            listOf(Base64.getDecoder().decode(deposit.asJsonObject["signed_psbt"].asString))
        } else {
            unsigned.finish().use { signed -> signed.transactions().map { bytes(it.payload) } }
        }
    }

/** Returns whether other keys than this one must sign too, as for a permission of an account. The sponsor of gas does not count. */
private fun hasOtherKeys(order: Order, wallet: ByteArray, key: String): Boolean =
    order.prepare(wallet).use { unsigned ->
        unsigned.sign(key)
        unsigned.missing().any { it != "sponsor" }
    }

/** An order from verification to its transactions. */
fun objectTests(fixtures: Fixtures): Map<String, () -> Unit> = mapOf(
    "signed with a local key, every case has the bytes of the fixtures" to {
        var signed = 0
        for (case in fixtures.cases) {
            val key = case.key ?: continue
            case.verify(fixtures.registry).use { order ->
                equal(order.family(), case.family, case.id)
                order.prepare(case.wallet).use { unsigned ->
                    unsigned.sign(key)
                    equal(JsonParser.parseString(unsigned.artefacts()), case.expect["artefacts"], case.id)
                    signed += 1
                }
            }
        }
        check(signed > 300) { "only $signed" }
        println("        $signed cases")
    },
    "signed outside, an order has the bytes of the fixtures" to {
        val families = mutableMapOf<String, Int>()
        for (case in fixtures.cases) {
            val key = case.key ?: continue
            if (case.family == "starknet" || case.family == "bitcoin" || "secp256" in case.id) continue
            case.verify(fixtures.registry).use { order ->
                if (!hasOtherKeys(order, case.wallet, key)) order.prepare(case.wallet).use { unsigned ->
                    // The signature of whoever pays the gas is not this key's to make.
                    val own = unsigned.requests().filter { it.name != "sponsor" }
                    for (request in own) unsigned.attach(request.name, signOutside(request, key))
                    equal(JsonParser.parseString(unsigned.artefacts()), case.expect["artefacts"], case.id)
                    if (unsigned.missing().isEmpty()) unsigned.finish().use { equal(it.orderId(), order.orderId(), case.id) }
                    families.merge(case.family, 1, Int::plus)
                }
            }
        }
        equal(families.keys, setOf("evm", "tron", "solana", "sui"), "families")
        println("        $families")
    },
    "a signer may return the signed transaction" to {
        for (one in listOf(
            Returned("evm-token-approval-exact", "\"nonce\":22", "\"nonce\":23", "transaction_mismatch", listOf("approval", "initiate")),
            Returned("solana-native-v0", "null", "\"SysvarC1ock11111111111111111111111111111111\"", "transaction_mismatch", listOf("transaction")),
            Returned("bitcoin-p2wpkh", "\"fee_rate\":\"2\"", "\"fee_rate\":\"3\"", "psbt_mismatch", listOf("input_0")),
        )) {
            val case = fixtures.case(one.id)
            val changed = String(case.wallet).replace(one.from, one.to).toByteArray()
            check(!changed.contentEquals(case.wallet)) { one.id }
            case.verify(fixtures.registry).use { order ->
                order.prepare(case.wallet).use { unsigned ->
                    val before = unsigned.artefacts()
                    for (other in signedBytes(order, changed, case.key!!)) {
                        val error = refused(one.code, one.id) { unsigned.attachTransaction(other) }
                        equal(error.at, "/transaction", one.id)
                    }
                    refused("transaction_mismatch", one.id) { unsigned.attachTransaction(byteArrayOf()) }
                    equal(unsigned.artefacts(), before, "${one.id}: a refused transaction changes nothing")
                    val attached: List<String> = signedBytes(order, case.wallet, case.key).flatMap { unsigned.attachTransaction(it) }
                    equal(attached, one.names, one.id)
                    check(unsigned.missing().none { it in one.names }) { one.id }
                }
            }
        }
    },
    "transactions are the ones of the fixtures" to {
        val case = fixtures.case("evm-token-approval-exact")
        finish(fixtures, case).use { signed ->
            val transactions = signed.transactions()
            equal(transactions.map { it.role }, listOf("approval", "initiate"), "roles")
            equal(transactions.map { it.payload }, listOf("approval", "initiate").map { case.artefact(it, "signed") }, "payloads")
            equal(transactions.map { it.id }, listOf("approval", "initiate").map { case.artefact(it, "tx_hash") }, "ids")
            equal(signed.gasless(), case.artefact("typed_data", "signature"), "the same key signs the gasless message")
        }
    },
    "the gasless path has the signature of the fixtures" to {
        val case = fixtures.case("evm-token-approval-exact")
        case.verify(fixtures.registry).use { order ->
            order.prepareGasless().use { unsigned ->
                equal(unsigned.missing(), listOf("typed_data"), "missing")
                val request = unsigned.requests().single()
                equal(request.native.kind, "typed_data", "kind")
                equal("0x" + hex(request.digest), case.artefact("typed_data", "digest"), "digest")
                unsigned.attach(request.name, signOutside(request, case.key!!))
                unsigned.finish().use {
                    equal(it.gasless(), case.artefact("typed_data", "signature"), "signature")
                    equal(it.transactions(), emptyList<Any>(), "transactions")
                }
            }
        }
    },
    "terms, summary, warnings and coverage are typed" to {
        val case = fixtures.case("evm-token-approval-unlimited")
        case.verify(fixtures.registry).use { order ->
            val terms = order.terms()
            equal(terms.pay.number, "2500000000", "amount")
            equal(terms.pay.kind to terms.pay.unit, "amount" to "usdc", "kind and unit")
            equal(terms.orderId, order.orderId(), "order id")
            equal(terms.timelock?.unit, "blocks", "timelock")
            val summary = order.summary()
            check(summary.any { line -> line.topic == "pay" && line.values.any { it.number == "2500000000" } }) { summary }
            equal(order.warnings().single { it.code == "unlimited_approval" }.severity in listOf("caution", "danger"), true, "severity")
            val covered = order.coverage()
            check(covered.any { it.at.endsWith("/data") && it.start != null }) { covered }
            check(order.walletCalls().size == 2)
            order.prepare(case.wallet).use { check(it.summary().last().topic == "to sign") }
            order.prepare(case.wallet).use { unsigned ->
                unsigned.sign(case.key!!)
                unsigned.finish().use { signed ->
                    for (sent in signed.transactions()) {
                        val matched = order.matchWithWarnings(sent.payload.toByteArray())
                        equal(matched.role, sent.role, "role")
                        // What the service proposed is in the order's own warnings.
                        equal(matched.warnings.map { it.code }, listOf<String>(), "warnings")
                        equal(order.matches(sent.payload.toByteArray()), sent.role, "role")
                    }
                }
            }
            refused("transaction_mismatch", "no transaction") { order.matches("0x00".toByteArray()) }
            refused("transaction_mismatch", "no receipts") { order.findPayment("{\"status\": 200}".toByteArray()) }
        }
    },
    "an order is prepared as often as fees change" to {
        val case = fixtures.case("evm-token-approval-exact")
        case.verify(fixtures.registry).use { order ->
            val digests = listOf(5, 6).map { nonce ->
                val wallet = """{"nonce": $nonce, "gas_price": "1000000000"}""".toByteArray()
                order.prepare(wallet).use { unsigned -> hex(unsigned.requests().first().digest) }
            }
            equal(digests.distinct().size, 2, "digests")
        }
    },
)

fun finish(fixtures: Fixtures, case: Case): SignedOrder =
    case.verify(fixtures.registry).use { order ->
        order.prepare(case.wallet).use { unsigned ->
            unsigned.sign(case.key!!)
            unsigned.finish()
        }
    }

/** Recovery and records. */
fun recoveryTests(fixtures: Fixtures): Map<String, () -> Unit> = mapOf(
    "a record refunds without the service" to {
        val case = fixtures.case("evm-record-evm-v1")
        Recovery.refund(case.record!!, Leg.SOURCE, fixtures.registry).use { recovery ->
            equal(listOf(recovery.family(), recovery.role(), recovery.orderId()), listOf("evm", "refund", case.expect["order_id"].asString), "refund")
            check(recovery.amount().toBigInteger().signum() > 0)
            val wallet = """{"nonce": 3, "gas_price": "1000000000", "gas_limit": 100000}""".toByteArray()
            recovery.prepare(wallet).use { unsigned ->
                val request = unsigned.requests().single()
                equal(request.name, "refund", "request")
                unsigned.attach(request.name, signOutside(request, case.key!!))
                unsigned.finish().use { equal(it.transactions().single().role, "refund", "role") }
            }
        }
    },
    "a wrong secret is refused, and not repeated" to {
        val case = fixtures.case("evm-record-evm-v1")
        val error = refused("secret_wrong", "secret") { Recovery.redeem(case.record!!, Leg.DESTINATION, "0x" + "5a".repeat(32), fixtures.registry) }
        check(!error.toString().contains("5a5a"))
    },
    "a record says what its HTLCs must hold" to {
        val case = fixtures.case("evm-record-evm-v1")
        Record.verify(case.request, case.response, case.record!!, fixtures.registry).use { record ->
            equal(record.orderId(), case.expect["order_id"].asString, "order id")
            val terms = record.terms(Leg.DESTINATION)
            equal(listOf(terms.unit, terms.chain, record.terms(Leg.SOURCE).chain), listOf("blocks", "base", "ethereum"), "terms")
        }
    },
)
