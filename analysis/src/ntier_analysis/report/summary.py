"""The report in short, as data (`report.json`) and as text for the terminal: verdict, trials, warnings, page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from ntier_analysis.report import rent, tables, words
from ntier_analysis.report.data import SweepData
from ntier_analysis.wording import resource

FILE = "report.json"


def summary(data: SweepData) -> dict[str, Any]:
    """{schema_version, sweep, topology, scale, sentence, verdict, trials, warnings, cost}; numbers that are not known
    are null. `verdict`: as `ntier-analysis verdict --json` prints it, without its trials. Of each trial: trial, users
    (nominal), users_real, rep, valid, reasons, throughput_per_s (measured) with throughput_interval (95 %),
    response_time_mean_ms, response_time_p95_ms, and hottest: the system's node and resource with the largest
    saturation {node, resource, utilization_mean_pct, saturation (share of the run phase), interval}, or null. `cost`:
    of rented machines (`rent.cost`), else null."""
    hot = tables.hottest(data)
    document = {
        "schema_version": 1,
        "sweep": data.sweep,
        "topology": data.topology,
        "scale": data.scale,
        "sentence": words.verdict_sentence(data.verdict, data.scale),
        "verdict": {k: v for k, v in data.verdict.items() if k != "trials"},
        "trials": [_trial(t, hot.loc[t.trial] if t.trial in hot.index else None) for t in data.trials.itertuples()],
        "warnings": words.warnings(data.trials, data.checks, data.verdict),
        "cost": rent.cost(data.manifests),
    }
    return orjson.loads(to_json(document))


def to_json(document: Any) -> str:
    """NaN becomes null."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(document, option=options, default=lambda _: None).decode()  # pandas' NA


def read(page: Path) -> dict[str, Any]:
    """The summary beside a page that `write_report` wrote, and `report`: where the page is."""
    return orjson.loads((page.parent / FILE).read_bytes()) | {"report": str(page)}


def _trial(t: Any, top: pd.Series | None) -> dict[str, Any]:
    return {
        "trial": t.trial,
        "users": t.users,
        "users_real": t.users_real,
        "rep": t.rep,
        "valid": bool(t.valid),
        "reasons": t.invalid_reasons or t.failure or "",
        "throughput_per_s": t.throughput_per_s,
        "throughput_interval": [t.throughput_low_per_s, t.throughput_high_per_s],
        "response_time_mean_ms": t.response_time_mean_ms,
        "response_time_p95_ms": t.response_time_p95_ms,
        "hottest": None if top is None else {
            "node": top.node,
            "resource": top.resource,
            "utilization_mean_pct": top.utilization_mean_pct,
            "saturation": top.saturation,
            "interval": [top.saturation_low, top.saturation_high],
        },
    }  # fmt: skip


HEAD = (
    "trial",
    "users",
    "interactions/s [95 %]",
    "response ms, mean",
    "p95",
    "hottest",
    "busy",
    "saturated [95 %]",
    "",
)
LEFT = ("trial", "hottest", "")


def text(report: dict[str, Any]) -> str:
    """What `summary` gives, for a person: the sentence, a line per trial, the warnings, the page."""
    rows = [HEAD, *(_row(t) for t in report["trials"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = [
        "  ".join(c.ljust(w) if h in LEFT else c.rjust(w) for h, c, w in zip(HEAD, row, widths, strict=True)).rstrip()
        for row in rows
    ]
    warnings = [f"warning: {w}" for w in report["warnings"]]
    paid = [rent.sentence(report["cost"])] if report.get("cost") else []
    return "\n".join([report["sentence"], "", *lines, "", *paid, *warnings, f"report: {report['report']}"])


def _row(t: dict[str, Any]) -> tuple[str, ...]:
    rate, top = t["throughput_per_s"], t["hottest"]
    hottest = ("–", "–", "–")
    if top is not None:
        busy = "–" if top["utilization_mean_pct"] is None else f"{top['utilization_mean_pct']:.0f} %"
        hottest = (f"{top['node']} {resource(top['resource'])}", busy, _share(top))
    return (
        t["trial"],
        words.count(t["users"]),
        "–" if rate is None else words.interval(rate, *t["throughput_interval"]),
        words.number(t["response_time_mean_ms"]),
        words.number(t["response_time_p95_ms"]),
        *hottest,
        "" if t["valid"] else f"INVALID: {t['reasons'] or 'not collected'}",
    )


def _share(top: dict[str, Any]) -> str:
    low, high = top["interval"]
    return "–" if None in (top["saturation"], low, high) else words.share(top["saturation"], low, high)
