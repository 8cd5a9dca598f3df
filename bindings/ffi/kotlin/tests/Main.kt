/** Runs the tests of the Kotlin binding: `Main FIXTURES LINES ORDERS`, with the groups of lines that `kotlin/test` made. */

import java.io.File
import kotlin.system.exitProcess

/** The tests by name. Each throws where it fails. */
fun tests(checkout: File, fixtures: Fixtures, lines: File, orders: Int): Map<String, () -> Unit> =
    batchTests(lines) + objectTests(fixtures) + recoveryTests(fixtures) + errorTests(fixtures) + exampleTests(fixtures) +
        readerTests(fixtures) +
        mapOf("$orders orders leave no memory behind" to { leaks(fixtures, orders) }) +
        httpTests() + runnerTests() + swapTests(checkout)

fun main(arguments: Array<String>) {
    val (fixtures, lines, orders) = arguments
    var failed = 0
    for ((name, test) in tests(File(fixtures).absoluteFile.parentFile, Fixtures(File(fixtures)), File(lines), orders.toInt())) {
        try {
            test()
            println("ok      $name")
        } catch (error: Throwable) {
            failed += 1
            println("FAILED  $name")
            error.printStackTrace(System.out)
        }
    }
    if (failed > 0) exitProcess(1)
}

/** Fails unless both are equal. */
fun equal(actual: Any?, expected: Any?, what: String) {
    if (actual != expected) throw AssertionError("$what\n  actual   $actual\n  expected $expected")
}

/** Fails unless the block throws an error of this code, and returns the error. */
fun refused(code: String, what: String, block: () -> Unit): countersign.CountersignException.Failure {
    try {
        block()
    } catch (error: countersign.CountersignException.Failure) {
        equal(error.code, code, what)
        return error
    }
    throw AssertionError("$what: not refused")
}
