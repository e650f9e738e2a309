"""Plain text for a person at the terminal."""

from __future__ import annotations

import math

from ntier_analysis.contracts import Check, Outcome, Validity
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck


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
        interval = f" ({maximum.low:.1f} to {maximum.high:.1f})" if math.isfinite(maximum.low) else ""
        lines.append(f"  maximum throughput {'at least ' if v.at_least else ''}{maximum.value:.1f}/s{interval}")
    lines += [f"  next: {text}" for text in v.next]
    lines += [f"  - {text}" for text in v.evidence]
    lines.append(f"  {'trial':16} {'users':>6} {'X/s':>8} {'R ms':>8} {'lost':>7} {'explained':>9}  verdict")
    for load, t in v.trials:
        lost = f"{100 * t.lost:.1f} %" if math.isfinite(t.lost) else "-"
        explained = f"{100 * t.explained:.0f} %" if math.isfinite(t.explained) else "-"
        named = _named(t.verdict, t.kind, t.bottlenecks) if load.valid else f"invalid: {load.invalid_reasons}"
        answer = f"{load.throughput_per_s:8.1f} {1000 * load.response_s:8.0f}"
        lines.append(f"  {load.trial:16} {load.users:6d} {answer} {lost:>7} {explained:>9}  {named}")
    for step in v.migration:
        a, b = step["from"], step["to"]
        lines.append(
            f"  migration: {a['tier']} {a['resource']} at {step['from_users']} users -> {b['tier']} {b['resource']} "
            f"at {step['to_users']}"
        )
    if v.analysis_version:
        lines.append(f"  judged by the rules of {v.analysis_version}")
    return "\n".join(lines)


def _named(verdict: str, kind: str, bottlenecks: list[Bottleneck]) -> str:
    listed = " and ".join(
        f"{b.tier} {b.resource} {100 * b.saturation:.0f} % ({100 * b.low:.0f} to {100 * b.high:.0f})"
        for b in bottlenecks
    )
    return " ".join(filter(None, [verdict, kind if kind != "stable" else "", listed]))
