"""What is under test: the versions of the programs that run on the nodes, recorded with each trial and the same for all
trials of a sweep."""

from __future__ import annotations

import json
from typing import Any

from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.versions import UNKNOWN, differing

from ntier_harness import ledger
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.spec import CLIENT

RUNNING = "running."
"""Prefix of a version that the program itself told; without it: the version of the installed package."""


def read(lab: Lab, facts: dict[str, dict[str, Any]]) -> dict[str, str]:
    """`role.kernel`, `role.<package>` (of `facts`: node -> ntier-node's) and `role.running.<component>`, asked of the
    programs that run. Nodes of one role that differ: all versions, each with its nodes. Raises WorkError."""
    asked = dict(lab.runner.parallel(lambda n: (n.name, _of(lab, n, facts.get(n.name, {}))), lab.nodes.all))
    seen: dict[str, dict[str, list[str]]] = {}
    for node in lab.nodes.all:
        versions = facts.get(node.name, {})
        own = {"kernel": versions.get("kernel", UNKNOWN), **versions.get("packages", {})}
        for name, version in (own | {RUNNING + k: v for k, v in asked[node.name].items()}).items():
            seen.setdefault(f"{node.role}.{name}", {}).setdefault(str(version), []).append(node.name)
    return {name: _text(by_version) for name, by_version in seen.items()}


def _of(lab: Lab, node: Node, facts: dict[str, Any]) -> dict[str, str]:
    """What the programs of a node say. Asked once as long as the same processes serve on it (to ask costs the start of
    a JVM); of a client each time, since its driver is another process in each trial."""
    same = {name: value for name, value in facts.items() if name != "time_s"}
    before, told = lab.told.get(node.name, ({}, {}))
    if node.tier == CLIENT or not same.get("services") or before != same:
        told = _ask(lab, node)
        lab.told[node.name] = (same, told)
    return told


def _ask(lab: Lab, node: Node) -> dict[str, str]:
    out = lab.nodes.call(node, "ntier-node versions", timeout=30).out
    try:
        return json.loads(out)
    except ValueError:
        raise WorkError(f"{node.name}: ntier-node versions did not print JSON: {out[:200]!r}") from None


def _text(by_version: dict[str, list[str]]) -> str:
    if len(by_version) == 1:
        return next(iter(by_version))
    return ", ".join(f"{version} ({' '.join(nodes)})" for version, nodes in by_version.items())


def check_same(lab: Lab, attempts: dict[str, list[ledger.Attempt]], sweep: str) -> None:
    """Checks that the programs running now are of the versions that the sweep's trials measured. Raises RequestError
    naming component, old and new version."""
    earlier = [a for list_ in attempts.values() for a in list_ if a.outcome == "valid" and a.manifest]
    if not earlier:
        return
    first = min(earlier, key=lambda a: a.manifest.phases[0].start_s or 0.0)
    lab.told.clear()
    facts = dict(lab.runner.parallel(lambda n: (n.name, lab.nodes.facts(n)), lab.nodes.all))
    changed = differing(first.manifest.versions, read(lab, facts))
    if changed:
        listed = "; ".join(f"{name} was {old}, is {new}" for name, old, new in changed)
        raise RequestError(
            f"name: sweep {sweep} has trials of other versions ({listed}); give another --name, or bring the old "
            f"versions back ({first.directory.parent} stays as it is)"
        )
