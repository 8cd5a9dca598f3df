"""The stubs are what the compiled module has, and the package type-checks under strict rules."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import countersign_swap

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
import stubs  # noqa: E402


def mypy(*arguments: str, cwd: Path) -> str:
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=cwd, capture_output=True, text=True)
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def test_the_stubs_are_what_the_module_has(tmp_path: Path) -> None:
    # stubtest takes a Literal of several words for a Union, and mypy does not follow an `__all__` that is added to another.
    literals = [name for name, item in vars(countersign_swap).items() if typing.get_origin(item) is typing.Literal]
    names = ["__all__", *(f"_shapes.{name}" for name in literals)]
    (tmp_path / "allowed").write_text("".join(f"countersign_swap\\.{re.escape(name)}\n" for name in names))
    output = mypy("mypy.stubtest", "countersign_swap", "--allowlist", "allowed", cwd=tmp_path)
    assert output.startswith("0\n"), output


def test_examples_and_tests_pass_strict_checks(tmp_path: Path) -> None:
    files = [str(path) for folder in ("examples", "tests") for path in sorted((HERE / folder).glob("*.py"))]
    files += [str(HERE / name) for name in ("bench.py", "stubs.py")]
    # The signers are optional, and not all of them have types.
    output = mypy("mypy", "--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path), *files, cwd=HERE / "tests")
    assert output.startswith("0\n"), output


def test_misuse_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "misuse.py").write_text(
        "import countersign_swap\n"
        "registry = countersign_swap.Registry({})\n"
        "countersign_swap.Recovery.refund('{}', 'sauce', registry)\n"
        "countersign_swap.verify_many('{}', registry, threads='2')\n"
        "countersign_swap.Order()\n"
        "recovery = countersign_swap.Recovery.refund('{}', 'source', registry)\n"
        "recovery.prepare({'nonce': 1, 'gas_price': 1.5})\n"
        "recovery.prepare({'nonce': 1, 'gas_prise': 1})\n"
        "recovery.role == 'refunds'\n"
        "recovery.prepare({'nonce': 1, 'gas_price': 10**9, 'gas_limit': 300_000})\n"
    )
    output = mypy("mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "misuse.py", cwd=tmp_path)
    assert output.startswith("1\n"), output
    for line in (2, 3, 4, 7, 8, 9):
        assert f"misuse.py:{line}: error" in output
    assert "misuse.py:10" not in output


def test_the_stubs_have_the_docstrings_of_the_module() -> None:
    stub = stubs.STUB.read_text()
    assert stubs.documented(stub) == stub, "run python stubs.py"


def test_the_package_has_its_licences_and_addresses() -> None:
    package = importlib.metadata.distribution("countersign-swap")
    files = {path.name: path for path in package.files or []}
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        assert files[name].read_text() == (HERE.parents[1] / name).read_text()
    assert package.metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert package.metadata.get_all("Project-URL")


def test_the_constraints_have_a_version_of_everything_that_the_tests_need() -> None:
    lines = [line for line in (HERE / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {normal(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert len(pinned) == len(lines) and all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pinned.values())
    extra = re.search(r"^test = \[(.*)\]$", (HERE / "pyproject.toml").read_text(), re.MULTILINE)
    assert extra is not None
    wanted = re.findall(r'"([\w-]+)>=([\d.]+)', extra[1])
    assert len(wanted) == extra[1].count('"') // 2
    for name, floor in wanted:
        assert numbers(pinned[normal(name)]) >= numbers(floor), name
    # What `check` installs beside the extra.
    assert {"maturin", "pyarrow"} <= pinned.keys()


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def test_the_package_is_marked_as_typed() -> None:
    assert countersign_swap.__file__ is not None
    assert (Path(countersign_swap.__file__).parent / "py.typed").is_file()
