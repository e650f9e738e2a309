"""Expectations from the command line and from files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import read_yaml
from ntier_analysis.errors import DataError
from ntier_analysis.expectation.expressions import Outcome, Result, evaluate
from ntier_analysis.expectation.quantities import Facts, knee, maximum, read_facts
from ntier_analysis.expectation.quantity import Quantity
from ntier_analysis.verdict.store import named


def check(
    store: Path, expressions: list[str], source: Path | None = None, only: list[str] | None = None
) -> list[Result]:
    """`expressions` must hold for each sweep of `only` (default: each of the store). `source`: a YAML or JSON file
    {sweep: [expression, ...]}, sweep `all` for each; or {sweep: {key of the verdict: value}}; what it has of sweeps
    that are not in `only` is left out.

    Raises DataError for a request that cannot be read, names an unknown sweep, or holds nothing."""
    given = _read(source) if source else {}  # first: a wrong file is told before a long look at the store
    facts = read_facts(store, only or [])
    wanted: list[tuple[str, Any]] = [(sweep, text) for sweep in facts for text in expressions]
    for name, value in given.items():
        names = list(facts) if name == "all" else [name]
        wanted += [(sweep, value) for sweep in names]
    named(store, [sweep for sweep, _ in wanted])
    results: list[Result] = []
    for sweep, value in wanted:
        if sweep not in facts:
            continue  # of the file, and not asked for
        sweep_facts = facts[sweep]
        if isinstance(value, dict):
            results += [_key(sweep_facts, key, expected, source) for key, expected in value.items()]
        else:
            texts = value if isinstance(value, list) else [value]
            results += [evaluate(_text(text, source), sweep_facts, store) for text in texts]
    if not results:
        raise DataError(
            f"{store}: there is nothing to check; give --expect or a file of expectations, and a store that holds a "
            "sweep"
        )
    return results


def _read(source: Path) -> dict[str, Any]:
    document, _ = read_yaml(source)
    if not isinstance(document, dict) or not all(isinstance(v, dict | list | str) for v in document.values()):
        raise DataError(f"{source}: expected {{sweep: [expectation, ...]}} or {{sweep: {{key: value}}}}")
    return {str(k): v for k, v in document.items()}


def _text(value: Any, source: Path | None) -> str:
    if not isinstance(value, str):
        raise DataError(f"{source}: expectation {value!r} is not a text")
    return value


def _key(facts: Facts, key: str, expected: Any, source: Path | None) -> Result:
    """A key of the verdict's JSON: equal, or [low, high] for a number; `bottleneck` is the first one."""
    verdict = facts.verdict
    if key == "bottleneck":
        seen: Any = verdict["bottlenecks"][0] if verdict["bottlenecks"] else None
        allowed = ("tier", "resource", "nodes", "item")
        if not isinstance(expected, dict) or not set(expected) <= set(allowed):
            raise DataError(
                f"{source}: {facts.sweep}: bottleneck is {expected!r}, expected keys of {{{', '.join(allowed)}}}"
            )
        holds = seen is not None and all(seen.get(k) == v for k, v in expected.items())
    elif key not in verdict:
        raise DataError(f"{source}: {facts.sweep}: unknown key {key!r}; allowed are bottleneck, {', '.join(verdict)}")
    else:
        seen = verdict[key]
        holds = seen == expected
    said, outcome = repr(seen), Outcome.HOLDS if holds else Outcome.FAILS
    if key in _INTERVALS:
        value = _INTERVALS[key](verdict)
        said, outcome = value.text, _in_range(value, expected, f"{source}: {facts.sweep}: {key}")
    elif _is_ignorance(verdict, key, seen, expected):
        outcome = Outcome.UNDECIDED
    evidence = tuple(verdict["evidence"]) if key in _OF_VERDICT else ()
    return Result(facts.sweep, f"{key} is {expected!r}", outcome, said, evidence)


_INTERVALS = {"max_throughput_per_s": maximum, "knee_users": knee}
_OF_VERDICT = ("verdict", "kind", "bottleneck", "bottlenecks", "migration")
"""Keys that say nothing while the verdict is unknown: an empty list then is ignorance."""


def _is_ignorance(verdict: dict, key: str, seen: Any, expected: Any) -> bool:
    if key in _OF_VERDICT and verdict["verdict"] == "unknown":
        return not (key == "verdict" and expected == "unknown")
    return seen is None and expected is not None and key not in _OF_VERDICT


def _in_range(measured: Quantity, expected: Any, place: str) -> Outcome:
    """A number is a range of one; null expects that it is not known."""
    if expected is None:
        return Outcome.HOLDS if math.isnan(measured.value) else Outcome.FAILS
    ends = expected if isinstance(expected, list) else [expected, expected]
    if len(ends) != 2 or not all(isinstance(e, int | float) for e in ends):
        raise DataError(f"{place} is {expected!r}, expected [low, high]")
    low, high = measured.low, measured.high
    if low is None or high is None:
        return Outcome.UNDECIDED
    if ends[0] <= low and high <= ends[1]:
        return Outcome.HOLDS
    return Outcome.FAILS if high < ends[0] or low > ends[1] else Outcome.UNDECIDED
