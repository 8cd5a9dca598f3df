"""Audits stored orders on a Ray cluster: verifies every case again, and writes the verdicts as Parquet.

    pip install './bindings/python[scale]'    # in a clone: `countersign` on PyPI is another project, and this one is not published yet
    python audit_ray.py --registry registry.json --cases cases/ --out verdicts/

`cases/` holds files with one case a line, as `countersign batch` takes them. A worker takes a file at a time, so have several files for
each processor, of some ten thousand cases. Leave the wallet's `secret_key` out of what is stored: an audit needs no key. Each row
of the result is one case: where it came from, whether it is accepted, or why not and where.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data

import countersign_swap

SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("id", pa.string()),
        ("accepted", pa.bool_()),
        ("code", pa.string()),
        ("at", pa.string()),
        ("message", pa.string()),
        ("family", pa.string()),
        ("order_id", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("input_bytes", pa.int64()),
        ("processor_seconds", pa.float64()),
    ]
)


def verify(files: pa.Table, registry: countersign_swap.Registry, policy: countersign_swap.Policy) -> pa.Table:
    """Verifies the cases of whole files. It runs in the workers, which get registry and policy by pickle."""
    rows: list[dict[str, Any]] = []
    for file, content in zip(files["path"].to_pylist(), files["bytes"].to_pylist()):
        # Split as bytes: a case is what the line holds, even where that is not UTF-8.
        lines = [(number, line) for number, line in enumerate(content.split(b"\n"), 1) if line.strip()]
        start = time.process_time()
        # One thread: Ray runs as many workers as there are processors.
        outputs = list(countersign_swap.verify_many([line for _, line in lines], registry, policy, threads=1))
        seconds = (time.process_time() - start) / max(len(lines), 1)
        rows += [row(file, number, len(line), output, seconds) for (number, line), output in zip(lines, outputs)]
    return pa.Table.from_pylist(rows, SCHEMA)


def row(file: str, number: int, size: int, output: str, seconds: float) -> dict[str, Any]:
    result = json.loads(output)
    error = result.get("error", {})
    return {
        "file": file,
        "line": number,
        "id": result["id"],
        "accepted": result["ok"],
        "code": error.get("code"),
        "at": error.get("at"),
        "message": error.get("message"),
        "family": result.get("family"),
        "order_id": result.get("order_id"),
        "warnings": [warning["code"] for warning in result.get("warnings", [])],
        "input_bytes": size,
        "processor_seconds": seconds,
    }


def audit(cases: str, registry: countersign_swap.Registry, policy: countersign_swap.Policy, out: str, workers: int) -> float:
    """Writes the verdicts of all cases to a folder of Parquet files, and returns how many seconds it took."""
    start = time.perf_counter()
    files = ray.data.read_binary_files(cases, include_paths=True)
    # Tasks and no actors: Ray then reads, verifies and writes a file in one task, and no processor waits for another.
    verdicts = files.map_batches(
        functools.partial(verify, registry=registry, policy=policy),
        batch_format="pyarrow",
        batch_size=1,
        compute=ray.data.TaskPoolStrategy(size=workers),
    )
    verdicts.write_parquet(out)
    return time.perf_counter() - start


def report(out: str, elapsed: float, workers: int) -> str:
    """The table that is printed: the whole, each family, and the commonest refusals."""
    table = pq.read_table(out, columns=["accepted", "code", "family", "input_bytes", "processor_seconds"])
    orders = table.num_rows
    verifying = sum(table["processor_seconds"].to_pylist())
    stored = sum(file.stat().st_size for file in Path(out).rglob("*.parquet"))
    size = sum(table["input_bytes"].to_pylist()) / max(orders, 1)
    lines = [
        f"{orders:,} orders in {elapsed:.1f} s with {workers} workers",
        f"{orders / elapsed / workers:,.0f} orders per second per core, from text files to Parquet, with Ray's own work",
        f"{orders / verifying if verifying else 0:,.0f} orders per second of processor time while verifying",
        f"{size:,.0f} bytes of input and {stored / max(orders, 1):,.0f} bytes of Parquet per order",
        "",
        f"{'verdict':<40} {'orders':>12}",
    ]
    names = [
        (f"accepted, {family}" if accepted else f"refused, {code}")
        for accepted, code, family in zip(*(table[name].to_pylist() for name in ("accepted", "code", "family")))
    ]
    lines += [f"{name:<40} {count:>12,}" for name, count in Counter(names).most_common(20)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Audits stored orders on a Ray cluster.")
    parser.add_argument("--registry", type=Path, required=True, help="what the wallet had pinned")
    parser.add_argument("--policy", type=Path, help="the wallet's limits")
    parser.add_argument("--cases", required=True, help="a file, folder or address of cases, one a line")
    parser.add_argument("--out", required=True, help="the folder for Parquet files")
    parser.add_argument("--workers", type=int, help="tasks at a time, by default as many as the cluster has processors")
    parser.add_argument("--address", help="a running cluster; by default one is started on this machine")
    arguments = parser.parse_args()
    ray.init(address=arguments.address, include_dashboard=False, log_to_driver=False)
    workers = arguments.workers or int(ray.cluster_resources()["CPU"])
    registry = countersign_swap.Registry(arguments.registry.read_bytes())
    policy = countersign_swap.Policy(arguments.policy.read_bytes() if arguments.policy else None)
    elapsed = audit(arguments.cases, registry, policy, arguments.out, workers)
    print(report(arguments.out, elapsed, workers))


if __name__ == "__main__":
    main()
