"""Many lines at once: the interpreter lock is released, several threads work, Ctrl-C ends the call, memory stays flat."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import countersign_swap
from cases import REGISTRY, all_accepted

LINES = [case.line for case in all_accepted().values()]
# The length of the leak test: 100,000 takes a minute or two.
ORDERS = int(os.environ.get("COUNTERSIGN_LEAK_ORDERS", "5000"))


def test_other_python_threads_make_progress(registry: countersign_swap.Registry) -> None:
    steps = 0
    done = threading.Event()

    def count() -> None:
        nonlocal steps
        while not done.is_set():
            steps += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = steps
        start = time.monotonic()
        list(countersign_swap.verify_many(LINES * 10, registry, threads=1))
        elapsed = time.monotonic() - start
        during = steps - before
    finally:
        done.set()
        thread.join()
    # With the lock held, at most the steps before and after the call would be counted.
    assert during > 20 * elapsed, (during, elapsed)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the time of each thread is read from /proc")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_work_is_shared_by_as_many_threads_as_were_asked_for(threads: int, registry: countersign_swap.Registry) -> None:
    def times() -> dict[str, int]:
        """Nanoseconds of processor time of each thread of this process."""
        found = {}
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):
                found[task] = int(Path(f"/proc/self/task/{task}/schedstat").read_text().split()[0])
        return found

    lines = LINES * (8192 // len(LINES))
    before = times()
    seen: dict[str, int] = {}
    most = 0
    call = threading.Thread(target=lambda: list(countersign_swap.verify_many(lines, registry, threads=threads)))
    call.start()
    while call.is_alive():
        # Beside the threads that verify, the calling thread waits.
        now = {task: spent for task, spent in times().items() if task not in before and task != str(call.native_id)}
        seen.update(now)
        most = max(most, len(now))
        time.sleep(0.002)
    assert most == threads
    # How much each gets on a busy machine varies. Each slice of the lines has threads of its own.
    assert sorted(seen.values())[-threads] > max(seen.values()) / 4, sorted(seen.values())


def test_an_input_that_fails_while_it_is_read_raises_its_own_error(registry: countersign_swap.Registry) -> None:
    def lines() -> Iterator[str]:
        yield LINES[0]
        raise KeyError("the source broke off")

    results = countersign_swap.verify_many(lines(), registry)
    assert next(results) == countersign_swap.verify_line(LINES[0], registry)
    with pytest.raises(KeyError, match="the source broke off"):
        next(results)
    assert list(results) == []


def test_results_come_while_lines_are_read(registry: countersign_swap.Registry) -> None:
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        for taken in range(1, 50_001):
            yield LINES[0]

    results = countersign_swap.verify_many(lines(), registry)
    assert iter(results) is results
    assert taken == 0
    for _ in range(100):
        assert json.loads(next(results))["ok"]
    assert taken < 1_000


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_neither_lines_nor_results_are_kept(registry: countersign_swap.Registry) -> None:
    def lines(count: int) -> Iterator[bytes]:
        for index in range(count):
            yield LINES[index % len(LINES)].encode()

    def size(count: int) -> int:
        return sum(map(len, countersign_swap.verify_many(lines(count), registry)))

    size(3_000)
    before = resident()
    results = size(20_000)
    grown = resident() - before
    assert grown * 1024 < results / 4, f"{grown} KiB more after {results} bytes of results"


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX systems")
def test_ctrl_c_ends_a_long_call(tmp_path: Path) -> None:
    (tmp_path / "registry.json").write_text(REGISTRY)
    (tmp_path / "line.json").write_text(LINES[0])
    program = (
        "import signal\n"
        "import countersign_swap\n"
        # A process that was started in the background ignores the signal, and its children do too.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "registry = countersign_swap.Registry(open('registry.json').read())\n"
        "lines = [open('line.json').read()] * 2_000_000\n"
        "print('started', flush=True)\n"
        "try:\n"
        "    list(countersign_swap.verify_many(lines, registry, threads=1))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait() == 0
        assert time.monotonic() - start < 10


def resident() -> int:
    """Kibibytes of this process in memory."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def run_orders(count: int, registry: countersign_swap.Registry) -> None:
    """Takes orders through every state, accepted and refused, by objects and by lines."""
    cases = list(all_accepted().values())
    for index in range(count // 2):
        case = cases[index % len(cases)]
        documents = case.documents
        order = countersign_swap.Order.verify(documents["request"], documents["response"], registry, record=documents.get("order"))
        order.summary(), order.terms(), order.warnings(), order.coverage()
        unsigned = order.prepare(documents["wallet"])
        unsigned.requests(), unsigned.artefacts()
        try:
            if '"secret_key"' in documents["wallet"]:
                unsigned.sign(case.key)
            unsigned.finish().transactions()
        except countersign_swap.Refusal as refusal:
            assert refusal.code == "signature_missing"
        try:
            countersign_swap.Order.verify(documents["response"], documents["request"], registry)
        except countersign_swap.Refusal:
            pass
    for start in range(0, count // 2, 500):
        list(countersign_swap.verify_many(LINES[:250] * 2, registry))
        del start


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="memory is read from /proc")
def test_memory_stays_flat(registry: countersign_swap.Registry) -> None:
    run_orders(2_000, registry)
    before = resident()
    run_orders(ORDERS, registry)
    grown = resident() - before
    # Losing 1 KiB an order would be 5,000 KiB or more.
    assert grown < 4_000, f"{grown} KiB more after {ORDERS} orders"
