import countersign.Policy
import countersign.Registry
import countersign.verifyLine
import java.io.File

/** Every line of the fixtures gives the bytes that the native program prints. */
fun batchTests(groups: File): Map<String, () -> Unit> = mapOf(
    "lines give the bytes of the program" to {
        var lines = 0
        for (group in groups.listFiles()!!.sorted()) {
            val registry = Registry(File(group, "registry.json").readBytes())
            val policy = File(group, "policy.json").takeIf(File::exists)?.let { Policy(it.readBytes()) }
            val results = File(group, "results.jsonl").readLines()
            val inputs = File(group, "lines.jsonl").readLines()
            equal(inputs.size, results.size, "results in $group")
            for ((line, result) in inputs.zip(results)) {
                equal(verifyLine(line.toByteArray(), registry, policy), result, "$group: ${line.take(60)}")
                lines += 1
            }
        }
        check(lines > 1000) { "only $lines lines" }
        println("        $lines lines")
    },
    "bytes that are not text are refused as the program refuses them" to {
        val registry = Registry(File(groups, "000/registry.json").readBytes())
        for (line in listOf(byteArrayOf(), byteArrayOf(-1, -2), "{\"id\":\"".toByteArray() + byteArrayOf(-64, -128))) {
            check(verifyLine(line, registry).contains("\"ok\":false"))
        }
    },
)
