"""The code of README.md runs, in its order, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cases import REGISTRY, all_accepted

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("eth_account")
    case = all_accepted()["evm-token-approval-unlimited"]
    (tmp_path / "registry.json").write_text(REGISTRY)
    (tmp_path / "request.json").write_text(case.documents["request"])
    (tmp_path / "response.json").write_text(case.documents["response"])
    (tmp_path / "key.txt").write_text(case.key + "\n")
    (tmp_path / "cases.jsonl").write_text("".join(f"{accepted.line}\n" for accepted in all_accepted().values()))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    printed = capsys.readouterr().out
    for comment in re.findall(r"^ +# (.+)$", "".join(blocks), re.MULTILINE):
        assert f"{comment}\n" in printed
    assert len(re.findall("^(?:approval|initiate) 0x[0-9a-f]{64} 0x02", printed, re.MULTILINE)) == 2
    results = namespace["results"]
    assert isinstance(results, list)
    assert len(results) == len(all_accepted())
