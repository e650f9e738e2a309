"""R: was written what the users wrote, and do all replicas hold it? For mixes that write; `data_before.json` and
`data_after.json` of each database node have the number of rows and a digest of each table."""

from __future__ import annotations

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.mix import tables
from ntier_analysis.validity.registry import Finding, check, exact, not_applicable
from ntier_analysis.wording import counted

NOT_WRITTEN = "the mix does not write"


def _writes(trial: RawTrial) -> bool:
    """By the mix's tables, not by the files alone: one that is missing must not pass for a mix that does not write.
    Without such tables (a load that is no walk of users) by what was done."""
    writing = implied.rows(trial.system).keys() | trial.system.writing
    if trial.strict or trial.path(f"config/{trial.manifest.mix}.csv"):
        done = {state for table in trial.remember(tables).values() for state in table.rows}
    else:
        done = set(trial.interactions["interaction"])
    return bool(writing & done) or any(trial.path(f"nodes/{n}/data_after.json") for n in _databases(trial))


def _tier(trial: RawTrial) -> str:
    """The tier whose nodes show what the data are: the deepest one, unless another one's nodes were asked (of a cluster
    those that speak SQL)."""
    order = trial.system.order
    asked = (t for t in reversed(order) if any(trial.path(f"nodes/{n}/data_after.json") for n in trial.of_tier(t)))
    return next(asked, order[-1])


def _databases(trial: RawTrial) -> list[str]:
    return trial.of_tier(_tier(trial))


@check("R1", "Rows: those written differ from the interactions that wrote", "rows_lost")
def rows(trial: RawTrial) -> Finding:
    """A request that failed, was tried again or was under way at the end may have written or not."""
    if not _writes(trial):
        return exact(0.0, 0.0, "rows", NOT_WRITTEN, 0)
    promised = implied.rows(trial.system)
    if not promised:
        return not_applicable("no interaction of this system promises a number of rows")
    name = _databases(trial)[0]
    before, after = (trial.json(f"nodes/{name}/data_{when}.json") for when in ("before", "after"))
    done = trial.interactions
    cut_off = int((trial.users["pending_s"] > 0).sum()) if trial.wrote("users.csv") else 0
    unsure = cut_off + int(trial.progress.groupby("client")["retries"].max().sum())
    lost, parts, total = 0, [], 0
    for interaction, names in promised.items():
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
    shown = next(t for t in trial.system.tiers if t.name == _tier(trial))
    if shown.replicas is Replicas.PARTITIONED:
        return not_applicable("each database holds a part of the data")
    if len(names) == 1 and not implied.rows(trial.system):
        return not_applicable("one node holds the data, and no interaction of this system promises rows")
    if not _writes(trial):
        return exact(0.0, 0.0, "tables", NOT_WRITTEN, 0)
    states = [trial.json(f"nodes/{name}/data_after.json") for name in names]
    differ = sorted(t for t in states[0] if any(state.get(t) != states[0][t] for state in states[1:]))
    detail = f"differ: {', '.join(differ)}" if differ else f"{counted(len(names), 'replica')}, {len(states[0])} tables"
    return exact(float(len(differ)), 0.0, "tables", detail, len(names))
