"""How far a campaign is and when it should end. It is read from the manifests each time and stored nowhere."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.files import RECORD_BYTES, read_json
from ntier_analysis.wording import counted
from pydantic import BaseModel

from ntier_harness import ledger, plan, schedule
from ntier_harness.campaign_spec import Campaign, blocks, parse, switch_s
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.files import no_record
from ntier_harness.lab import Lab
from ntier_harness.plan import Trial
from ntier_harness.screen import duration, size
from ntier_harness.spec import Spec

RECORD = "campaign.json"
STATES = ("planned", "running", "done", "invalid", "failed")


class _Record(BaseModel):
    schema_version: int
    file: str
    digest: str
    text: str
    sweeps: dict[str, dict[str, Any]]
    errors: dict[str, dict[str, Any]]


def folder(lab: Lab, name: str) -> Path:
    return lab.paths.results / "campaigns" / name


def read_record(file: Path) -> dict[str, Any]:
    """{schema_version, file, digest, text, sweeps, errors}. Raises WorkError if it is not that."""
    try:
        return _Record.model_validate(read_json(file, RECORD_BYTES)).model_dump()
    except ValueError as error:
        raise no_record(file, "campaign", error) from None


@dataclass(frozen=True)
class Row:
    """One sweep: trials by state (those of a search that are not chosen yet are planned, at most), the key of the one
    that runs, what ended it early, seconds and bytes that the rest is expected to take."""

    spec: Spec
    counts: dict[str, int]
    running: str
    error: str
    left_s: float
    disk_bytes: int


def trial_states(lab: Lab, campaign: Campaign, spec: Spec) -> dict[str, str]:
    """State of each known trial, from the manifests alone. One with attempts left is planned."""
    tries = ledger.attempts(lab.paths.raw / spec.sweep)
    return {t.key: _state(t, tries, campaign.attempts) for t in schedule.make(lab, spec, campaign.attempts).trials()}


def _state(trial: Trial, tries: dict[str, list[ledger.Attempt]], attempts: int) -> str:
    mine = tries.get(trial.key, [])
    if any(a.outcome == "valid" for a in mine):
        return "done"
    if mine and mine[-1].outcome == "running":
        return "running"
    if ledger.next_attempt(trial, tries, attempts) is not None:
        return "planned"
    return "invalid" if mine[-1].outcome == "invalid" else "failed"


def trial_s(lab: Lab, campaign: Campaign) -> dict[str, float]:
    """Seconds that a trial takes, by sweep: the plan's, and what measured trials of these phases took beyond theirs."""
    planned = {s.sweep: plan.trial_duration_s(s) for s in campaign.sweeps}
    beyond: dict[str, list[float]] = {s.phases.name: [] for s in campaign.sweeps}
    for spec in campaign.sweeps:
        took = ledger.took_s(ledger.attempts(lab.paths.raw / spec.sweep))
        beyond[spec.phases.name] += [s - planned[spec.sweep] for s in took]
    more = {phases: statistics.fmean(seconds) if seconds else 0.0 for phases, seconds in beyond.items()}
    return {s.sweep: planned[s.sweep] + more[s.phases.name] for s in campaign.sweeps}


def rounds(lab: Lab, campaign: Campaign) -> dict[str, float]:
    """Rounds of a warm-up, by sweep: the mean of those that were measured before runs of this length; none of it if
    none was."""
    found: dict[str, dict[float, float]] = {s.phases.name: {} for s in campaign.sweeps}
    for spec in campaign.sweeps:
        round_s = spec.system.definition.warm_up_s
        took = ledger.warm_ups(ledger.attempts(lab.paths.raw / spec.sweep))
        found[spec.phases.name] |= {began: seconds / round_s for began, seconds in took.items() if round_s}
    return {s.sweep: statistics.fmean(n.values()) for s in campaign.sweeps if (n := found[s.phases.name])}


@ledger.read_once()
def rows(lab: Lab, campaign: Campaign) -> list[Row]:
    """The ledger, in the order of the file."""
    target = folder(lab, campaign.name) / RECORD
    errors = read_record(target)["errors"] if target.exists() else {}
    seconds, table = trial_s(lab, campaign), []
    for spec in campaign.sweeps:
        error = errors.get(spec.sweep, {}).get("error", "")
        try:
            states = trial_states(lab, campaign, spec)
            more = max(0, schedule.make(lab, spec, campaign.attempts).at_most() - len(states))
            disk = plan.disk_bytes(spec, schedule.to_come(lab, spec, campaign.attempts))
        except WorkError as problem:
            states, more, disk, error = {}, 0, 0, str(problem)
        counts = Counter(states.values()) + Counter(planned=more)
        running = next((k for k, s in states.items() if s == "running"), "")
        left = (counts["planned"] + counts["running"]) * seconds[spec.sweep]
        table.append(Row(spec, {s: counts[s] for s in STATES}, running, error, left, disk))
    return table


def to_run(lab: Lab, campaign: Campaign, table: list[Row]) -> list[tuple[Spec, int]]:
    """What is left, in the order in which it will run: each sweep that has trials left in a block, and their number."""
    found, before = [], {r.spec.sweep: 0 for r in table}
    open_ = {r.spec.sweep for r in table if r.left_s}
    for spec in (spec for block in blocks(campaign) for spec in block if spec.sweep in open_):
        n = len(schedule.to_come(lab, spec, campaign.attempts))
        new, before[spec.sweep] = n - before[spec.sweep], n
        found += [(spec, new)] if new > 0 else []
    return found


def legs(lab: Lab, campaign: Campaign, left: list[tuple[Spec, int]], *, up: bool = False) -> list[tuple[Spec, float]]:
    """Seconds for what is left (`to_run`): for its trials, for the switch to it, and for its report. Retries are not in
    it, and no long warm-ups. `up`: nor what it takes to install machines."""
    found: list[tuple[Spec, float]] = []
    seconds, warm = trial_s(lab, campaign), rounds(lab, campaign)
    for spec, n in left:
        first = not found and lab.target.name == campaign.target and os.path.exists(lab.paths.nodes)
        switch = switch_s(found[-1][0] if found else None, spec, warm.get(spec.sweep), up=up or first)
        found.append((spec, switch + n * seconds[spec.sweep] + plan.REPORT_S))
    return found


def left_s(lab: Lab, campaign: Campaign, table: list[Row]) -> float:
    """Seconds until the expected end."""
    return sum(seconds for _, seconds in legs(lab, campaign, to_run(lab, campaign, table)))


@ledger.read_once()
def ends(lab: Lab, campaign: Campaign) -> str:
    left = left_s(lab, campaign, rows(lab, campaign))
    if not left:
        return "nothing left to run"
    return f"expected end {ledger.local_time(lab.runner.now() + left)}, without retries and long warm-ups"


@ledger.read_once()
def data(lab: Lab, campaign: Campaign) -> dict[str, Any]:
    """The ledger as data: what `ntier plan --spec` and `ntier status` say."""
    ledger_rows = rows(lab, campaign)
    trials = to_run(lab, campaign, ledger_rows)
    paid = legs(lab, campaign, trials, up=True)  # prices have the installation of their machines themselves
    left = sum(seconds for _, seconds in legs(lab, campaign, trials))
    return {
        "campaign": campaign.name,
        "scale": sorted({s.scale for s in campaign.sweeps}),
        "attempts": campaign.attempts,
        "blocks": [[s.sweep for s in block] for block in blocks(campaign)],
        "trial_s": {k: round(v, 1) for k, v in trial_s(lab, campaign).items()},
        "left_s": round(left),
        "expected_end_s": round(lab.runner.now() + left) if left else None,
        "expected_end": ledger.local_time(lab.runner.now() + left) if left else None,
        "disk_bytes": sum(r.disk_bytes for r in ledger_rows),
        "price": lab.target.price_of_all(paid, campaign.name) if lab.target.name == campaign.target else None,
        "states": {s: sum(r.counts[s] for r in ledger_rows) for s in STATES},
        "sweeps": [_row(r) for r in ledger_rows],
    }


def _row(r: Row) -> dict[str, Any]:
    common = {"sweep": r.spec.sweep, "reps": r.spec.reps, "search": r.spec.search, **r.counts}
    return common | {"trial_running": r.running, "left_s": round(r.left_s), "error": r.error}


def stored(lab: Lab, cores: int) -> list[dict[str, Any]]:
    """The ledgers of all campaigns in the results."""
    campaigns = []
    for file in sorted((lab.paths.results / "campaigns").glob(f"*/{RECORD}")):
        try:
            record = read_record(file)
            campaign = parse(record["text"], record["file"], lab.paths.root, cores)
            campaigns.append(data(lab, replace(campaign, name=file.parent.name)))
        except (RequestError, WorkError) as error:
            campaigns.append({"campaign": file.parent.name, "problem": str(error)})
    return campaigns


def text(campaign: dict[str, Any], *, order: bool = False) -> str:
    """A ledger for a person; `order`: also the order in which the sweeps will run."""
    if "problem" in campaign:
        return f"campaign {campaign['campaign']}: {campaign['problem']}"
    width = max(len(s["sweep"]) for s in campaign["sweeps"])
    states = ", ".join(f"{n} {s}" for s, n in campaign["states"].items())
    lines = [
        f"campaign {campaign['campaign']}: scale {', '.join(f'{s:g}' for s in campaign['scale'])}, "
        f"{counted(campaign['attempts'], 'attempt')} per trial; {states}",
        f"  {'sweep':<{width}} {'planned':>8} {'running':>8} {'done':>8} {'invalid':>8} {'failed':>8}",
    ]
    for s in campaign["sweeps"]:
        numbers = " ".join(f"{s[state]:>8}" for state in STATES)
        more = f"  {s['trial_running']}" * bool(s["trial_running"]) + f"  error: {s['error']}" * bool(s["error"])
        lines.append(f"  {s['sweep']:<{width}} {numbers}{more}")
    if order:
        for number, block in enumerate(campaign["blocks"], 1):
            lines += [f"  repetition {number}, in this order:", *(f"    {name}" for name in block)]
    if campaign["expected_end"]:
        left, disk = duration(campaign["left_s"]), size(campaign["disk_bytes"])
        lines.append(
            f"  expected end {campaign['expected_end']} ({left}, {disk} of disk; switches between sweeps included, "
            "retries and long warm-ups not; a search counts with the most that it may run)"
        )
    else:
        lines.append("  nothing left to run")
    lines += price_lines(campaign["price"])
    return "\n".join(lines)


def price_lines(paid: dict[str, Any] | None) -> list[str]:
    """What rented machines cost; nothing if none are rented, or nobody knows."""
    if not paid or not paid["per_hour"]:
        return []
    currency = paid["currency"]
    lines = [
        f"  price about {paid['expected']:.2f} {currency}, without retries and long warm-ups: each machine from its "
        f"rental until no sweep needs it, started hours count whole ({paid['per_hour']:.2f} {currency} per hour at the "
        f"dearest time, prices of {paid['date']})"
    ]
    if paid["spent"]:
        lines.append(f"  {paid['spent']:.2f} {currency} were spent on this campaign before")
    if paid["budget"] is not None:
        early = paid["expected"] + paid["spent"] > paid["budget"]
        lines.append(
            f"  budget {paid['budget']:g} {currency}: before that the campaign ends and gives the machines back"
            + ", which will be before its last trial" * early
        )
    return lines
