/** The README's example, on a case of the fixtures. */
fun exampleTests(fixtures: Fixtures): Map<String, () -> Unit> = mapOf(
    "the README's example pays an order" to {
        val case = fixtures.case("evm-token-approval-exact")
        val paid = pay(case.request, case.response, case.wallet, fixtures.registry) { signOutside(it, case.key!!) }
        equal(paid.map { it.payload }, listOf("approval", "initiate").map { case.artefact(it, "signed") }, "payloads")
    },
)
