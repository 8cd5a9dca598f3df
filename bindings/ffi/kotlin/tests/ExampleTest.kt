import com.google.gson.JsonParser

/** The README's examples, on a case of the fixtures. */
fun exampleTests(fixtures: Fixtures): Map<String, () -> Unit> = mapOf(
    "the README's example pays an order" to {
        val case = fixtures.case("evm-token-approval-exact")
        val paid = pay(case.request, case.response, case.wallet, fixtures.registry) { signOutside(it, case.key!!) }
        equal(paid.map { it.payload }, listOf("approval", "initiate").map { case.artefact(it, "signed") }, "payloads")
    },
    "the README's example attaches signed transactions" to {
        val case = fixtures.case("evm-token-approval-exact")
        case.verify(fixtures.registry).use { order ->
            order.prepare(case.wallet).use { unsigned ->
                signWith(unsigned, { bytes(case.artefact(it.name, "signed")) }, { case.artefact(it.name, "signature") })
                equal(JsonParser.parseString(unsigned.artefacts()), case.expect["artefacts"], "artefacts")
            }
        }
    },
)
