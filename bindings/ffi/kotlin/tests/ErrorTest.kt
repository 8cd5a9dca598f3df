import countersign.Order
import countersign.Policy
import countersign.Record
import countersign.Registry
import countersign.Leg
import countersign.Recovery

/** What is wrong throws a typed error, whatever it is. */
fun errorTests(fixtures: Fixtures): Map<String, () -> Unit> = mapOf(
    "documents of every wrong kind throw typed errors" to {
        val case = fixtures.case("evm-token-approval-exact")
        val huge = ByteArray(17 * 1024 * 1024) { ' '.code.toByte() }
        for ((what, bytes, code) in listOf(
            Triple("empty", byteArrayOf(), "json_syntax"),
            Triple("not text", byteArrayOf(-1, -2, -3), "json_not_utf8"),
            Triple("bad UTF-8 in a string", "{\"a\":\"".toByteArray() + byteArrayOf(-64, -128) + "\"}".toByteArray(), "json_not_utf8"),
            Triple("a list", "[]".toByteArray(), "wrong_type"),
            Triple("a number", "1e999".toByteArray(), "wrong_type"),
            Triple("too deep", "[".repeat(100_000).toByteArray(), "json_too_deep"),
            Triple("too large", huge, "json_too_large"),
        )) {
            refused(code, "request: $what") { Order.verify(bytes, case.response, fixtures.registry) }
            refused(code, "response: $what") { Order.verify(case.request, bytes, fixtures.registry) }
            refused(code, "registry: $what") { Registry(bytes) }
            refused(code, "policy: $what") { Policy(bytes) }
            refused(code, "record: $what") { Recovery.refund(bytes, Leg.SOURCE, fixtures.registry) }
            case.verify(fixtures.registry).use { order -> refused(code, "wallet: $what") { order.prepare(bytes) } }
        }
    },
    "a tampered response is the service's, with what was expected and what came" to {
        val case = fixtures.case("evm-token-approval-exact")
        val amount = "1312d0"
        val text = String(case.response)
        check(text.contains(amount))
        val error = refused("amount_mismatch", "amount") {
            Order.verify(case.request, text.replace(amount, "1312d1").toByteArray(), fixtures.registry)
        }
        equal(error.blame, "service", "blame")
        check(error.at.startsWith("/response/result/initiate_transaction/data#")) { error.at }
        check(error.expected != null && error.actual != null && error.reason.isNotEmpty()) { error }
    },
    "keys and signatures that are wrong change nothing" to {
        val case = fixtures.case("evm-token-approval-exact")
        case.verify(fixtures.registry).use { order ->
            order.prepare(case.wallet).use { unsigned ->
                val before = unsigned.artefacts()
                refused("key_malformed", "empty") { unsigned.sign("") }
                refused("key_malformed", "not hex") { unsigned.sign("secret\u0000key") }
                val error = refused("key_mismatch", "another key") { unsigned.sign("0x" + "07".repeat(32)) }
                check(!error.toString().contains("0707"))
                refused("nothing_to_sign", "unknown name") { unsigned.attach("\"},{\"", case.artefact("typed_data", "signature")) }
                refused("signature_malformed", "no signature") { unsigned.attach("initiate", "") }
                refused("signature_malformed", "a million characters") { unsigned.attach("initiate", "0".repeat(1_000_000)) }
                refused("signature_mismatch", "another key's") {
                    unsigned.attach("initiate", signOutside(unsigned.requests().last { it.name == "initiate" }, "07".repeat(32)))
                }
                refused("signature_missing", "too early") { unsigned.finish() }
                equal(unsigned.artefacts(), before, "artefacts")
            }
        }
    },
    "an order that is used up says so" to {
        val case = fixtures.case("evm-token-approval-exact")
        case.verify(fixtures.registry).use { order ->
            order.prepare(case.wallet).use { unsigned ->
                unsigned.sign(case.key!!)
                unsigned.finish().close()
                val calls = mapOf<String, () -> Unit>(
                    "requests" to { unsigned.requests() }, "missing" to { unsigned.missing() }, "summary" to { unsigned.summary() },
                    "warnings" to { unsigned.warnings() }, "artefacts" to { unsigned.artefacts() }, "finish" to { unsigned.finish() },
                    "sign" to { unsigned.sign(case.key) }, "attach" to { unsigned.attach("initiate", "0x00") },
                )
                for ((name, call) in calls) equal(refused("used_up", name, call).blame, "caller", name)
            }
        }
    },
    "what a family does not have is refused" to {
        val case = fixtures.cases.first { it.family == "bitcoin" }
        case.verify(fixtures.registry).use { order ->
            refused("nothing_to_sign", "gasless") { order.prepareGasless() }
            refused("unsupported_family", "calls") { order.walletCalls() }
        }
        val without = fixtures.case("evm-token-approval-exact")
        refused("missing_field", "no record") {
            Record.verify(without.request, without.response, "null".toByteArray(), fixtures.registry)
        }
    },
    "a policy refuses what it forbids" to {
        val case = fixtures.case("evm-token-approval-unlimited")
        val policy = Policy("""{"refused_warnings": ["unlimited_approval"]}""".toByteArray())
        refused("warning_refused", "policy") { Order.verify(case.request, case.response, fixtures.registry, policy) }
        refused("unexpected_field", "typo") { Policy("""{"refused_warning": []}""".toByteArray()) }
    },
    "many threads share one order" to {
        val case = fixtures.case("evm-token-approval-exact")
        case.verify(fixtures.registry).use { order ->
            val unsigned = order.prepare(case.wallet)
            val finished = java.util.concurrent.atomic.AtomicInteger()
            val failed = java.util.concurrent.ConcurrentLinkedQueue<String>()
            val threads = List(8) {
                Thread {
                    try {
                        unsigned.sign(case.key!!)
                        unsigned.finish().close()
                        finished.incrementAndGet()
                    } catch (error: countersign.CountersignException.Failure) {
                        failed.add(error.code)
                    }
                }.apply(Thread::start)
            }
            threads.forEach(Thread::join)
            unsigned.close()
            equal(finished.get() to failed.toSet(), 1 to setOf("used_up"), "threads")
        }
    },
)
