"""Writes the report of one sweep: page, Markdown, figures, tables."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ntier_analysis import recovery
from ntier_analysis.contracts.files import write_text
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.figures.drawing import placed, save, write_csv
from ntier_analysis.figures.load_axis import over
from ntier_analysis.report import record, replicas, summary, tables, words
from ntier_analysis.report.data import SweepData, read_sweep
from ntier_analysis.report.drawings import density_figures, detail_sections, load_figures
from ntier_analysis.report.meaning import meaning
from ntier_analysis.report.repeat import repeating
from ntier_analysis.report.shell import assets, embedded, environment
from ntier_analysis.wording import counted

ORIGIN = b'# {"sweep": '
"""How a table of `save` begins."""


def write_report(store: Path, sweep: str, out: Path) -> Path:
    """Writes `<out>/<sweep>/report.html`, `report.md`, `report.json`, `figures/` and `tables/`; returns the path of the
    page.

    Raises DataError if the store does not hold the sweep."""
    made_from = record.inputs(store, sweep)
    data = read_sweep(store, sweep)
    folder = out / sweep
    record.forget(folder)
    with over(data.axis):
        loads, densities, sections = load_figures(data), density_figures(data), detail_sections(data)
        context = _context(data)
    shown = {}
    for pair in loads + densities + [p for s in sections for p in s.pairs]:
        with placed(pair.drawing.figure):
            save(pair.drawing, data.origin, folder / "figures")
            shown[pair.drawing.name] = embedded(pair, data.origin)
    clear(folder / "figures", shown)
    write_tables(data, folder / "tables")
    context |= {
        "figures": {
            "loads": [shown[p.drawing.name] for p in loads],
            "densities": [shown[p.drawing.name] for p in densities],
            "sections": [
                {"title": s.title, "note": s.note, "pairs": [shown[p.drawing.name] for p in s.pairs]} for s in sections
            ],
        }
    }
    write_text(folder / "report.md", environment(escape=False).get_template("report.md.j2").render(context))
    page = folder / record.PAGE
    write_text(folder / summary.FILE, summary.to_json(summary.summary(data)))
    write_text(page, environment(escape=True).get_template("page.html.j2").render(context | assets()))
    record.write(folder, made_from)
    return page


def clear(folder: Path, shown: Collection[str]) -> None:
    """Removes the figures of an earlier report that this one does not have (another trial is next to the knee, say), so
    that nobody takes them for its own. Only what `save` wrote goes, as the first line of its table tells."""
    for table in sorted(folder.glob("*.csv")):
        with table.open("rb") as file:
            ours = file.read(len(ORIGIN)) == ORIGIN
        if ours and table.stem not in shown:
            for end in (".png", ".pdf", ".csv"):
                table.with_suffix(end).unlink(missing_ok=True)


def kept_report(store: Path, sweep: str, out: Path) -> Path | None:
    """The page of a report in `out` that is up to date; None if there is none.

    Raises DataError if the store does not hold the sweep."""
    folder = out / sweep
    return folder / record.PAGE if record.unchanged(folder, record.inputs(store, sweep)) else None


def _context(data: SweepData) -> dict:
    trials, verdict, scale = data.trials, data.verdict, data.scale
    first = trials.iloc[0]
    start_s = trials["run_start_s"].min()
    slo_ms = first["slo_ms"]
    mix, middleware = ("" if pd.isna(first[c]) else str(first[c]) for c in ("mix", "middleware"))
    measured_on = "" if pd.isna(start_s) else f"{datetime.fromtimestamp(start_s, UTC):%Y-%m-%d %H:%M} UTC"
    return {
        "title": f"{data.topology} {mix}: {verdict['verdict']}",
        "sweep": data.sweep,
        "load_name": data.load_name,
        "load_real": data.load_real,
        "topology": data.topology,
        "mix": mix,
        "kicker": [part for part in (data.topology, mix, middleware, measured_on) if part not in ("", "none")],
        "sentence": words.verdict_sentence(verdict, scale),
        "meaning": meaning(verdict, trials, scale),
        "next_title": words.NEXT,
        "next": [words.sentence(line) for line in verdict["next"]],
        "evidence": [words.sentence(line) for line in _evidence(verdict)],
        "warnings": words.warnings(trials, data.checks, verdict) + recovery.warnings(data.from_above),
        "comes_back": recovery.sentences(data.recovery, data.topology),
        "recovery_rows": tables.recovery_rows(data),
        "facts": _facts(data),
        "scale_sentence": words.scale_sentence(scale),
        "scaled": scale != 1.0,
        "slo": "" if pd.isna(slo_ms) else f"{slo_ms / 1000:g} s",
        "trials": tables.trial_rows(data),
        "checks": tables.check_rows(data.checks),
        "check_details": (open_checks := tables.check_details(data.checks)),
        "check_summary": f"{counted(len(open_checks), 'check')} that did not pass, one by one",
        "sweep_checks": (rows := tables.sweep_check_rows(data.sweep_checks)),
        "sweep_check_summary": tables.sweep_check_summary(rows),
        "demands": tables.demand_rows(data),
        "prediction": words.prediction(data.forecast, scale, verdict),
        "mix_rows": tables.mix_rows(data),
        "share_rows": replicas.share_rows(data),
        "regret_rows": replicas.regret_rows(data),
        "chain_rows": tables.chain_rows(data),
        "policy": replicas.policy_of(data.trials),
        "statements_by": data.statements_by,
        "node_rows": tables.node_rows(data),
        "provenance": tables.provenance(data),
        "command": repeating(data.command),
        "commit": "" if data.origin.commit == "unknown" else data.origin.commit,
    }


def _span(counts: pd.Series) -> str:
    low, high = words.count(counts.min()), words.count(counts.max())
    return low if low == high else f"{low} to {high}"


def _evidence(verdict: dict) -> list[str]:
    """The evidence without the sentences that the warnings repeat."""
    said = ("trials are invalid", "imported: not validated:")
    return [e for e in verdict["evidence"] if not any(s in e for s in said)] + words.migrations(verdict)


def _facts(data: SweepData) -> list[dict]:
    trials, verdict, scale = data.trials, data.verdict, data.scale
    run_s = (trials["run_end_s"] - trials["run_start_s"]).median()
    valid = trials["valid"].sum()
    facts = [
        {
            "name": "Trials",
            "value": f"{valid} of {len(trials)} valid",
            "note": "" if pd.isna(run_s) else f"run phase {run_s:.0f} s each",
        },
        {
            "name": data.load_name.capitalize() if data.factor[0] == USERS else data.load_name,
            "value": _span(trials["users"]),
            "note": f"nominal; {_span(trials['users_real'])} real" if data.factor[0] == USERS else "",
        },
    ]
    if verdict["max_throughput_per_s"]:
        value, ends = verdict["max_throughput_per_s"], verdict["max_throughput_interval"]
        nominal = words.interval(value / scale, *(None if e is None else e / scale for e in ends))
        note = "interactions/s measured" + ("" if scale == 1.0 else f"; nominal {nominal}")
        name = "Maximum throughput" + (", at least" if verdict["max_throughput_at_least"] else "")
        facts.append({"name": name, "value": words.interval(value, *ends), "note": note})
    if verdict.get("knee_users") and verdict["verdict"] != "none":
        knee = verdict["knee_users"]
        least = ", at least" if verdict["max_throughput_at_least"] else ""
        beyond = "" if least else "; with more, all only wait longer"
        facts.append(
            {
                "name": f"Knee{least}",
                "value": f"{words.rounded(knee)}{_knee_ends(verdict)} {words.who(verdict)}",
                "note": f"nominal; {words.rounded(knee * scale)} real{beyond}",
            }
        )
    return facts


def _knee_ends(verdict: dict) -> str:
    """` [3,300, 4,900]`."""
    low, high = verdict["knee_interval"]
    return "" if low is None or high is None else f" [{words.rounded(low)}, {words.rounded(high)}]"


def write_tables(data: SweepData, folder: Path) -> None:
    """The frames as CSV files; with `trials.csv` the sweep can be imported again."""
    folder.mkdir(parents=True, exist_ok=True)
    trials, saturation = (f.assign(users=f["trial"].map(data.stored_users)) for f in (data.trials, data.saturation))
    frames = {
        "trials": trials,
        "saturation": saturation,
        "checks": data.checks,
        "sweep_checks": data.sweep_checks,
        "nodes": data.nodes,
        "mix": tables.mix(data),
        "demands": tables.demands(data),
        "replicas": replicas.shares(data),
        "choices": replicas.regrets(data),
        "from_above": data.from_above,
    }
    for name, frame in frames.items():
        write_csv(frame, folder / f"{name}.csv", data.origin)
