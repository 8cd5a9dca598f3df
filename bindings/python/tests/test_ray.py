"""The Ray example on a small set: a subprocess, because a cluster must not outlive the test."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import countersign_swap
from cases import REGISTRY, all_accepted, families, rejected

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "audit_ray.py"


def test_an_audit_on_ray_writes_a_row_for_each_case(tmp_path: Path, registry: countersign_swap.Registry) -> None:
    for module in ("ray", "pyarrow"):
        pytest.importorskip(module, reason=f"{module} is not installed: pip install './bindings/python[scale]'")
    import pyarrow.parquet as pq

    lines = [case.line for case in all_accepted().values()]
    lines += [case.line for family in families() for case in rejected(family)[:20] if "\n" not in case.line]
    (tmp_path / "registry.json").write_text(REGISTRY)
    (tmp_path / "cases").mkdir()
    for part in range(2):
        (tmp_path / "cases" / f"{part}.jsonl").write_text("\n".join(lines[part::2]) + "\n")
    arguments = ["--registry", "registry.json", "--cases", str(tmp_path / "cases"), "--out", str(tmp_path / "out"), "--workers", "1"]
    done = subprocess.run([sys.executable, str(EXAMPLE), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^[\d,]+ orders per second per core", done.stdout, re.MULTILINE), done.stdout
    rows = pq.read_table(tmp_path / "out").to_pylist()
    verdicts = sorted((row["id"] or "", row["accepted"], row["code"] or "", row["at"] or "", row["order_id"] or "") for row in rows)
    expected = []
    for output in map(json.loads, countersign_swap.verify_many(lines, registry)):
        error = output.get("error", {"code": "", "at": ""})
        expected.append((output["id"] or "", output["ok"], error["code"], error["at"], output.get("order_id", "")))
    assert verdicts == sorted(expected)
