"""The report in short, as data (`report.json`) and as text for the terminal: verdict, trials, warnings, page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from ntier_analysis import recovery
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.report import rent, tables, words
from ntier_analysis.report.data import SweepData
from ntier_analysis.wording import resource, why_invalid

FILE = "report.json"


def summary(data: SweepData) -> dict[str, Any]:
    """{schema_version, sweep, topology, scale, sentence, verdict, trials, comes_back, recovery, warnings, cost};
    numbers that are not known are null. `verdict`: as `ntier-analysis verdict --json` prints it, without its trials. Of
    each trial: trial, users (nominal), users_real, rep, valid, reasons, throughput_per_s (measured) with
    throughput_interval (95 %), response_time_mean_ms, response_time_p95_ms, and hottest: the system's node and resource
    with the largest saturation {node, resource, utilization_mean_pct, saturation (share of the run phase), interval},
    or null. `recovery`: of each load that was also measured from above, as `recovery.as_rows`, and `comes_back`: what
    that says in sentences; both empty if there is none. `cost`: of rented machines (`rent.cost`), else null."""
    hot = tables.hottest(data)
    document = {
        "schema_version": 1,
        "sweep": data.sweep,
        "topology": data.topology,
        "scale": data.scale,
        "sentence": words.verdict_sentence(data.verdict, data.scale),
        "verdict": {k: v for k, v in data.verdict.items() if k != "trials"},
        "trials": [_trial(t, hot.loc[t.trial] if t.trial in hot.index else None) for t in data.trials.itertuples()],
        "comes_back": recovery.sentences(data.recovery, data.topology),
        "recovery": recovery.as_rows(data.recovery),
        "warnings": words.warnings(data.trials, data.checks, data.verdict) + recovery.warnings(data.from_above),
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
        "reasons": why_invalid(t),
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
    USERS,
    "interactions/s [95 %]",
    "response ms, mean",
    "p95",
    "hottest",
    "busy",
    "saturated [95 %]",
    "",
)
LEFT = ("trial", "hottest", "")


RECOVERY_HEAD = ("users", "after", "interactions/s after a reset", "from above", "ratio [95 %]", "outcome", "by")
RECOVERY_LEFT = ("outcome", "by")


def text(report: dict[str, Any]) -> str:
    """What `summary` gives, for a person: the sentences, a line per trial and per load that was also measured from
    above, what to do next, the warnings, the page."""
    factor = report["verdict"]["factor"]
    load = f"{factor['name']} [{factor['unit']}]".removesuffix(" []")
    load = words.who(report["verdict"]) if factor["name"] == USERS else load
    head = [load if name == USERS else name for name in HEAD]
    lines = _aligned([tuple(head), *(_row(t) for t in report["trials"])], LEFT)
    if report.get("recovery"):
        lines += ["", *_aligned([RECOVERY_HEAD, *map(_recovery_row, report["recovery"])], RECOVERY_LEFT)]
    warnings = [f"warning: {w}" for w in report["warnings"]]
    paid = [rent.sentence(report["cost"])] if report.get("cost") else []
    said = [report["sentence"], *report.get("comes_back", [])]
    following = [f"next: {text}" for text in report["verdict"].get("next", [])]
    return "\n".join([*said, "", *lines, "", *paid, *following, *warnings, f"report: {report['report']}"])


def _aligned(rows: list[tuple[str, ...]], left: tuple[str, ...]) -> list[str]:
    """Lines of columns; the first row is the head. `left`: heads of the columns of text."""
    head = rows[0]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return [
        "  ".join(c.ljust(w) if h in left else c.rjust(w) for h, c, w in zip(head, row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _recovery_row(r: dict[str, Any]) -> tuple[str, ...]:
    value, (low, high) = r["ratio"], r["interval"]
    ratio = "unknown" if value is None else f"{value:.2f}" if low is None else words.share(value, low, high)
    rates = (words.number(r[k]) for k in ("after_reset_per_s", "from_above_per_s"))
    return words.count(r["users"]), words.count(r["above"]), *rates, ratio, r["outcome"], r["basis"]


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
