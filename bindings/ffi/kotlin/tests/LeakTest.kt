import countersign.Order
import countersign.Registry
import java.io.File

/** Resident memory of this process in bytes; null where there is no /proc. */
private fun resident(): Long? =
    File("/proc/self/statm").takeIf(File::exists)?.let { it.readText().split(' ')[1].toLong() * 4096 }

/** Runs orders of every family through all states, accepted and refused, and watches the memory of the process. */
fun leaks(fixtures: Fixtures, orders: Int) {
    val cases = fixtures.cases.filter { it.key != null }.groupBy { it.family }.values.map { it.first() }
    fun run(count: Int) = repeat(count) { number ->
        val case = cases[number % cases.size]
        finish(fixtures, case).use { it.transactions() }
        refused("json_syntax", "cut") { Order.verify(case.request, case.response.copyOf(100), fixtures.registry) }
        if (number % 100 == 0) Registry(fixtures.registryText).close()
    }
    // The virtual machine grows while it warms up.
    run(orders / 3)
    System.gc()
    val before = resident() ?: return println("        not measured: this system has no /proc")
    run(orders)
    System.gc()
    val grown = resident()!! - before
    println("        $orders orders, ${grown / 1024} KiB more than before")
    // Five kilobytes for each order show at the default number, and a quarter of one at 100,000.
    check(grown < 8L * 1024 * 1024 + orders * 100L) { "memory grew by $grown bytes" }
}
