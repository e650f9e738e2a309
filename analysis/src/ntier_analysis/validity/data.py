"""R: was written what the users wrote, and do all replicas hold it? For mixes that write; `data_before.json` and
`data_after.json` of each database node have the number of rows and a digest of each table."""

from __future__ import annotations

from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.mix import tables
from ntier_analysis.validity.registry import Finding, check, exact
from ntier_analysis.wording import counted

WRITES = {"StoreComment": ("comments", "old_comments"), "StoreModerateLog": ("moderator_log",)}
"""Interactions each of which leaves exactly one row in one of the tables. The others do not: a nickname may be taken, a
story may be accepted by one author while another rejects it."""


NOT_WRITTEN = "the mix does not write"


def _writes(trial: RawTrial) -> bool:
    """By the mix's tables, not by the files alone: one that is missing must not pass for a mix that does not write."""
    states = {state for table in trial.remember(tables).values() for state in table.rows}
    return bool(WRITES.keys() & states) or any(trial.path(f"nodes/{n}/data_after.json") for n in _databases(trial))


def _databases(trial: RawTrial) -> list[str]:
    return [name for name, node in trial.nodes.items() if node.tier == "db"]


@check("R1", "Rows: those written differ from the interactions that wrote", "rows_lost")
def rows(trial: RawTrial) -> Finding:
    """A request that failed, was tried again or was under way at the end may have written or not."""
    if not _writes(trial):
        return exact(0.0, 0.0, "rows", NOT_WRITTEN, 0)
    name = _databases(trial)[0]
    before, after = (trial.json(f"nodes/{name}/data_{when}.json") for when in ("before", "after"))
    done = trial.interactions
    unsure = int((trial.users["pending_s"] > 0).sum()) + int(trial.progress.groupby("client")["retries"].max().sum())
    lost, parts, total = 0, [], 0
    for interaction, names in WRITES.items():
        ok = done.loc[done["interaction"] == interaction, "ok"]
        written = sum(after[t]["rows"] - before[t]["rows"] for t in names)
        lost += max(0, int(ok.sum()) - written, written - len(ok) - unsure)
        parts.append(f"{interaction} {int(ok.sum())}, rows {written}")
        total += written
    return exact(float(lost), 0.0, "rows", f"{'; '.join(parts)}; at most {unsure} unsure", total)


@check("R2", "Replicas: tables whose rows differ between databases after the trial", "replicas_differ")
def replicas(trial: RawTrial) -> Finding:
    """Compares rows and digests; times are not in the digests, since each replica takes its own."""
    names = _databases(trial)
    if not _writes(trial):
        return exact(0.0, 0.0, "tables", NOT_WRITTEN, 0)
    states = [trial.json(f"nodes/{name}/data_after.json") for name in names]
    differ = sorted(t for t in states[0] if any(state.get(t) != states[0][t] for state in states[1:]))
    detail = f"differ: {', '.join(differ)}" if differ else f"{counted(len(names), 'replica')}, {len(states[0])} tables"
    return exact(float(len(differ)), 0.0, "tables", detail, len(names))
