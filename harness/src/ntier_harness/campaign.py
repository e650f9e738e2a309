"""Several sweeps as one, resumable at any time. The state of every trial is in its manifest; the campaign's own folder
keeps the specification as given and the errors that ended a sweep."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ntier_analysis.wording import counted, some_are

from ntier_harness import durable, preflight, schedule, sweep
from ntier_harness.campaign_ledger import RECORD, ends, folder, read_record, rows, trial_states
from ntier_harness.campaign_spec import Campaign, blocks
from ntier_harness.errors import NO_NODES, RequestError, Unanswered, WorkError
from ntier_harness.lab import Lab
from ntier_harness.spec import Spec


def fingerprint(spec: Spec) -> dict[str, Any]:
    """The settings of a sweep of the campaign, without loads and repetitions, which may grow."""
    return {"scale": spec.scale, "seed": spec.seed, "search": spec.search, "target": spec.target,
            "users": list(spec.users), "values": list(spec.values), "reps": spec.reps}  # fmt: skip


def check_additions(before: dict[str, Any], campaign: Campaign) -> None:
    """A campaign may grow: more sweeps, loads, repetitions, attempts. Raises RequestError for any other change."""
    now, hint = {s.sweep: fingerprint(s) for s in campaign.sweeps}, "give the campaign another name"
    was, is_ = ({f["scale"] for f in sweeps.values()} for sweeps in (before["sweeps"], now))
    if was != is_:  # which also names its sweeps otherwise
        raise RequestError(
            f"spec: campaign {campaign.name} has scale {min(was):g}, and the file now gives {min(is_):g} (by itself, "
            f"or because its largest topology needs that); {hint}"
        )
    for name, old in before["sweeps"].items():
        new = now.get(name)
        if new is None:
            raise RequestError(f"spec: campaign {campaign.name} had sweep {name}, which the file no longer has; {hint}")
        changed = [k for k in ("seed", "search", "target") if new[k] != old[k]]
        changed += ["users"] * (not set(old["users"]) <= set(new["users"]) or _moved(old, new))
        changed += ["values"] * (not set(old.get("values", [])) <= set(new["values"]))
        changed += ["reps"] * (new["reps"] < old["reps"])
        if changed:
            texts = ", ".join(f"{k} (was {old[k]})" for k in changed)
            raise RequestError(f"spec: campaign {campaign.name} exists with other {texts} of {name}; {hint}")


def _moved(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """A search with another range is another search."""
    return old["search"] == "capacity" and (old["users"][0], old["users"][-1]) != (new["users"][0], new["users"][-1])


def check(lab: Lab, campaign: Campaign) -> None:
    """What `preflight.check` says of a sweep, for all of them together. Raises RequestError, WorkError."""
    record = folder(lab, campaign.name) / RECORD
    if record.exists():
        check_additions(read_record(record), campaign)
    for spec in campaign.sweeps:
        preflight.check_record(lab, spec)
    left = [row for row in rows(lab, campaign) if row.left_s]
    preflight.check_disk(lab.paths, sum(row.disk_bytes for row in left))
    for row in left:
        preflight.check_machine(lab, row.spec)


def register(lab: Lab, campaign: Campaign, file: str) -> None:
    """Writes the campaign's record, unless it is there already."""
    target = folder(lab, campaign.name) / RECORD
    errors = read_record(target)["errors"] if target.exists() else {}
    made = {
        "schema_version": 1,
        "file": str(file),
        "digest": hashlib.sha256(campaign.text.encode()).hexdigest(),
        "text": campaign.text,
        "sweeps": {s.sweep: fingerprint(s) for s in campaign.sweeps},
        "errors": errors,
    }
    _save(target, made)


def _save(target: Path, made: dict[str, Any]) -> None:
    text = json.dumps(made, indent=1)
    if not target.exists() or target.read_text() != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        durable.write(target, text)


def _note(lab: Lab, campaign: Campaign, name: str, error: dict[str, Any] | None) -> None:
    """Records (or clears) what ended a sweep."""
    target = folder(lab, campaign.name) / RECORD
    made = read_record(target)
    made["errors"].pop(name, None)
    if error:
        made["errors"][name] = error
    _save(target, made)


def run(lab: Lab, campaign: Campaign, file: str) -> int:
    """Runs what is left of the campaign. A sweep that cannot go on is recorded, and the next one begins; what would end
    all others as well ends the campaign. Returns 0, or 1 if a trial has no valid attempt or a sweep ended early. Raises
    Interrupted, RequestError."""
    check(lab, campaign)
    lab.target.require_privileges()
    with sweep.locked(lab), sweep.paid_for(lab, campaign.name):
        sweep.claim_results(lab)
        sweep.tidy(lab, lab.paths.raw)
        register(lab, campaign, file)
        codes: dict[str, int] = {}
        why, before = "", None
        for number, spec in ((n, spec) for n, block in enumerate(blocks(campaign), 1) for spec in block):
            lab.runner.stop.check()
            lab.screen.say(f"campaign {campaign.name}: repetition {number} of {spec.sweep}; {ends(lab, campaign)}")
            codes[spec.sweep], error = _advance(lab, campaign, spec)
            if why := _ends_all(lab, error, before):
                break
            before = error
    left = [row.spec.sweep for row in rows(lab, campaign) if row.left_s] if why else []
    if why:
        untried = sum(name not in codes for name in left)
        lab.screen.warn(f"{why}: the campaign ends here; {counted(untried, 'sweep')} not tried")
    bad = sorted({*left, *(name for name, code in codes.items() if code)})
    lab.screen.event("campaign_end", campaign=campaign.name, sweeps=len(codes), not_complete=bad)
    if bad:
        lab.screen.warn(f"{some_are(len(bad), len(campaign.sweeps), 'sweep')} not complete: {', '.join(bad)}")
    return 1 if bad else 0


def _ends_all(lab: Lab, error: Exception | None, before: Exception | None) -> str:
    """Why no other sweep could run either; empty: it could. `error`, `before`: what ended this one and the one before
    it."""
    if lab.target.over() or str(error).startswith("budget:"):
        return "the budget does not last"
    alike = error and before and str(error) == str(before) and NO_NODES in getattr(error, "__notes__", ())
    return "two sweeps in a row had no nodes for the same reason" if alike else ""


def _advance(lab: Lab, campaign: Campaign, spec: Spec) -> tuple[int, Exception | None]:
    """Runs what the sweep has left of this block. Returns 1 if it ended early or a trial has no valid attempt, and what
    ended it. Raises Unanswered, which would end all other sweeps too."""
    try:
        if not complete(lab, campaign, spec):
            sweep.carry_out(lab, spec, campaign.attempts, brief=True)
    except Unanswered:
        raise
    except (WorkError, RequestError) as error:  # checked again: conditions may have changed since the campaign began
        lab.screen.close()
        lab.screen.warn(f"{spec.sweep}: {error}")
        _note(lab, campaign, spec.sweep, {"rep": spec.reps, "t_s": lab.runner.now(), "error": str(error)})
        return 1, error
    _note(lab, campaign, spec.sweep, None)
    return int(any(state != "done" for state in trial_states(lab, campaign, spec).values())), None


def complete(lab: Lab, campaign: Campaign, spec: Spec) -> bool:
    """Nothing is left of this sweep, and its report is newer than all of its records."""
    made = schedule.make(lab, spec, campaign.attempts)
    if schedule.unfinished(made.trials(), lab.paths.raw / spec.sweep, campaign.attempts) is not None:
        return False
    if isinstance(made, schedule.Search) and not made.stopped():
        return False
    report = lab.paths.results / "reports" / spec.sweep / "report.html"
    records = [*(lab.paths.raw / spec.sweep).glob("*/manifest.json"), *(lab.paths.raw / spec.sweep).glob("*.json")]
    return report.exists() and all(r.stat().st_mtime <= report.stat().st_mtime for r in records)
