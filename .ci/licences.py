#!/usr/bin/env python3
"""Checks the dependency graph against deny.toml if cargo-deny is not installed: licences, bans and sources.

Reads the tree that cargo itself resolves. The allow-list must satisfy each licence expression: one side of an OR, and both
sides of an AND.
"""
import re
import subprocess
import sys
import tomllib


def satisfied(expression: str, allowed: set[str]) -> bool:
    """Evaluates an SPDX expression. The old form `A/B` means `A OR B`."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def any_of() -> bool:
        value = all_of()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = all_of() or value
        return value

    def all_of() -> bool:
        value = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = one() and value
        return value

    def one() -> bool:
        token = tokens.pop(0)
        if token == "(":
            value = any_of()
            tokens.pop(0)
            return value
        if tokens and tokens[0] == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in allowed

    return any_of()


def parents(package: str) -> set[str]:
    """Returns the crates that directly depend on one."""
    name, version = package.split(" ")[:2]
    command = ["cargo", "tree", "--workspace", "--all-features", "--edges", "normal,build,dev", "--target", "all", "--locked"]
    command += ["--invert", f"{name}@{version.removeprefix('v')}", "--depth", "1", "--prefix", "depth", "--format", " {p}"]
    tree = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split(" ")[1] for line in tree.splitlines() if line.startswith("1 ")}


def main() -> int:
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    command = ["cargo", "tree", "--workspace", "--all-features", "--edges", "all", "--target", "all", "--locked"]
    command += ["--prefix", "none", "--format", "{p}\t{l}"]
    tree = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    allowed = set(rules["licenses"]["allow"])
    exceptions = {exception["crate"]: set(exception["allow"]) for exception in rules["licenses"].get("exceptions", [])}
    banned = {ban["crate"]: set(ban.get("wrappers", [])) for ban in rules["bans"]["deny"]}
    packages = sorted({line.replace(" (*)", "") for line in tree.splitlines() if "\t" in line})
    faults = []
    for line in packages:
        package, licence = line.split("\t")
        name, _, source = package.partition(" ")
        if "://" in source:
            faults.append(f"{package}: not from the registry")
        if name in banned:
            strangers = parents(package.removesuffix(" (proc-macro)")) - banned[name]
            if strangers or not banned[name]:
                faults.append(f"{package}: banned{' below ' + ', '.join(sorted(strangers)) if strangers else ''}")
        if not licence or not satisfied(licence, allowed | exceptions.get(name, set())):
            faults.append(f"{package}: licence {licence}")
    print("\n".join(faults) or f"{len(packages)} packages: licences, bans and sources are as deny.toml says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
