"""Plain text for a person at the terminal."""

from __future__ import annotations

import math

from ntier_analysis.contracts import Check, Outcome, Validity
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck
from ntier_analysis.wording import interval, number


def checks_text(validity: Validity) -> str:
    """One line per check (* = required), then the verdict."""
    lines = [_check_line(c) for c in validity.checks]
    lines.append("valid" if validity.valid else f"INVALID: {', '.join(validity.reasons)}")
    return "\n".join(lines)


def _check_line(c: Check) -> str:
    star = "*" if c.required else " "
    value = "" if c.value is None else f"{c.value:.4g}"
    limit = "" if c.limit is None else f"limit {c.limit:.4g} {c.unit}".rstrip()
    mark = {Outcome.PASS: "pass", Outcome.FAIL: "FAIL", Outcome.UNDECIDABLE: "  ? "}[c.outcome]
    return f"{star} {mark} {c.id:13} {value:>8} {limit:22} {c.title}: {c.detail}".rstrip(": ")


def verdict_text(v: SweepVerdict) -> str:
    """The verdict of a sweep with its evidence, and one line per trial."""
    maximum = v.max_throughput
    lines = [f"{v.sweep} ({v.topology}): {_named(v.verdict, v.kind, v.bottlenecks)}"]
    if maximum is not None:
        least = "at least " if v.at_least else ""
        lines.append(f"  maximum throughput {least}{interval(maximum.value, maximum.low, maximum.high)}/s")
    lines += [f"  next: {text}" for text in v.next]
    lines += [f"  - {text}" for text in v.evidence]
    who = v.factor if v.factor != USERS else LoadModel(v.load_model).who
    width = max(6, len(who))
    lines.append(f"  {'trial':16} {who:>{width}} {'X/s':>8} {'R ms':>8} {'lost':>7} {'explained':>9}  verdict")
    for load, t in v.trials:
        lost = f"{100 * t.lost:.1f} %" if math.isfinite(t.lost) else "-"
        explained = f"{100 * t.explained:.0f} %" if math.isfinite(t.explained) else "-"
        named = _named(t.verdict, t.kind, t.bottlenecks) if load.valid else f"invalid: {load.invalid_reasons}"
        answer = f"{number(load.throughput_per_s):>8} {1000 * load.response_s:8.0f}"
        lines.append(f"  {load.trial:16} {load.level:{width}.15g} {answer} {lost:>7} {explained:>9}  {named}")
    for step in v.migration:
        a, b = (f"{step[side]['tier']} {step[side]['resource']} at {_load(v, step, side)}" for side in ("from", "to"))
        lines.append(f"  migration: {a} -> {b}")
    if v.analysis_version:
        lines.append(f"  judged by the rules of {v.analysis_version}")
    return "\n".join(lines)


def _load(v: SweepVerdict, step: dict, side: str) -> str:
    """`4000 users`, `sleep_s 0.5 s`."""
    if f"{side}_value" in step:
        return f"{v.factor} {step[f'{side}_value']:g} {v.factor_unit}".rstrip()
    return f"{step[f'{side}_users']} {LoadModel(v.load_model).who}"


def _named(verdict: str, kind: str, bottlenecks: list[Bottleneck]) -> str:
    listed = " and ".join(
        f"{b.tier} {b.resource} {100 * b.saturation:.0f} % ({100 * b.low:.0f} to {100 * b.high:.0f})"
        for b in bottlenecks
    )
    return " ".join(filter(None, [verdict, kind if kind != "stable" else "", listed]))
