"""Compares `verify_many` with the native program: the same lines, from file to file, with the same number of threads.

    cargo build --release --locked -p countersign-cli     # in the project's folder; or set COUNTERSIGN to another build
    python bindings/python/bench.py                       # prints the table
    python bindings/python/bench.py --write               # and puts it into README.md

Both read the registry, read the lines, verify and sign each order, and write the results. Python's own start is not counted, the
program's is: it takes a few milliseconds. Rounds alternate, because the speed of a shared machine changes from minute to minute; the
processor time hardly depends on what else runs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import countersign_swap

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "tests"))

from cases import REGISTRY, accepted, all_accepted, edit, families, parse, program, write  # noqa: E402


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} processors"


def in_python(folder: Path, threads: int) -> None:
    registry = countersign_swap.Registry((folder / "registry.json").read_bytes())
    lines = (folder / "lines.jsonl").read_bytes().splitlines()
    with (folder / "python.jsonl").open("w", encoding="utf-8") as results:
        for output in countersign_swap.verify_many(lines, registry, threads=threads):
            results.write(output)
            results.write("\n")


def in_program(folder: Path, threads: int) -> None:
    command = [str(program()), "batch", "--registry", "registry.json", "--threads", str(threads)]
    with (folder / "lines.jsonl").open("rb") as lines, (folder / "native.jsonl").open("wb") as results:
        subprocess.run(command, cwd=folder, stdin=lines, stdout=results, check=True)


class Spent(NamedTuple):
    seconds: float
    processor: float


def processor_seconds() -> float:
    """What this process and its ended children have had of all processors."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(run: Callable[[Path, int], None], folder: Path, threads: int) -> Spent:
    start, processor_start = time.perf_counter(), processor_seconds()
    run(folder, threads)
    return Spent(time.perf_counter() - start, processor_seconds() - processor_start)


def without_keys(count: int) -> list[str]:
    """Cases as an audit stores them: no keys, each with an id and, where no record fixes it, an order id of its own."""
    trees = [parse(case.line) for case in all_accepted().values()]
    lines = []
    for number in range(count):
        tree = trees[number % len(trees)]
        tree['"wallet"'].pop('"secret_key"', None)
        names = {'"/id"': f'"order-{number:09}"'}
        if '"order"' not in tree:
            names['"/response/result/order_id"'] = f'"{hashlib.sha256(str(number).encode()).hexdigest()}"'
        edit(tree, {'"set"': names})
        lines.append(write(tree))
    return lines


def row(name: str, lines: list[str], orders: int, threads: int, rounds: int) -> str:
    lines = (lines * (orders // len(lines) + 1))[:orders]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "registry.json").write_text(REGISTRY)
        (folder / "lines.jsonl").write_text("\n".join(lines) + "\n")
        pairs = [(measure(in_program, folder, threads), measure(in_python, folder, threads)) for _ in range(rounds)]
        if (folder / "native.jsonl").read_bytes() != (folder / "python.jsonl").read_bytes():
            sys.exit(f"{name}: the results differ")
    native, python = (min(spent.seconds for spent in side) for side in zip(*pairs))
    rates = f"{orders / native:,.0f} | {orders / python:,.0f}"
    ratios = [python / native, statistics.median(python.seconds / native.seconds for native, python in pairs)]
    ratios.append(statistics.median(python.processor / native.processor for native, python in pairs))
    cost = min(python.processor for _, python in pairs) / orders * 1e6
    return f"| {name} | {threads} | {rates} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + f" | {cost:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares verify_many with the native program.")
    parser.add_argument("--orders", type=int, default=20_000, help="lines in each measurement")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each pair")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    arguments = parser.parse_args()
    if program() is None:
        sys.exit("no native program: run cargo build --release --locked -p countersign-cli, or set COUNTERSIGN")
    if "release" not in str(program()):
        print("warning: the program may not be a release build", file=sys.stderr)
    load = os.getloadavg()[0]
    by_family = {family: [case.line for case in accepted(f"{family}.jsonl")] for family in families()}
    every = [line for lines in by_family.values() for line in lines]
    rows = [("all families", every, threads) for threads in sorted({1, os.cpu_count() or 1})]
    rows.append(("all families, without keys", without_keys(len(every)), 1))
    rows += [(family, lines, 1) for family, lines in by_family.items()]
    table = [
        f"{processor()}; CPython {platform.python_version()}; load average before the run: {load:.2f}; {arguments.orders:,} orders,"
        f" {arguments.rounds} rounds.",
        "",
        "| orders | threads | native, orders/s | Python, orders/s | time, best rounds | time, median | processor time, median | us of a processor |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, lines, threads in rows:
        table.append(row(name, lines, arguments.orders, threads, arguments.rounds))
        print(table[-1], file=sys.stderr)
    print("\n".join(table))
    if arguments.write:
        readme = HERE / "README.md"
        head, _, rest = readme.read_text().partition("<!-- begin bench -->\n")
        _, _, tail = rest.partition("<!-- end bench -->")
        readme.write_text(head + "<!-- begin bench -->\n" + "\n".join(table) + "\n<!-- end bench -->" + tail)


if __name__ == "__main__":
    main()
