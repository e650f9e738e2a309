"""R: was written what the users wrote, and do all replicas hold it? For mixes that write; `data_before.json` and
`data_after.json` of each database node have the number of rows and a digest of each table. And were all nodes there
that hold the data? For clusters whose management node was asked for that."""

from __future__ import annotations

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.mix import tables
from ntier_analysis.validity.registry import Finding, check, exact, not_applicable, undecidable
from ntier_analysis.wording import counted

CLUSTER_STATUS = "cluster_status"
"""Collector of a management node: `data_nodes_started` of `data_nodes`, once a second."""
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
    if trial.system.restores is False:
        return not_applicable("nodes of this system do not tell what they hold (data: restores: in system.yaml)")
    states = [trial.json(f"nodes/{name}/data_after.json") for name in names]
    differ = sorted(t for t in states[0] if any(state.get(t) != states[0][t] for state in states[1:]))
    detail = f"differ: {', '.join(differ)}" if differ else f"{counted(len(names), 'replica')}, {len(states[0])} tables"
    return exact(float(len(differ)), 0.0, "tables", detail, len(names))


@check("R3", "Data nodes: readings of the management node at which not all of them were started", "data_nodes_lost")
def data_nodes(trial: RawTrial) -> Finding:
    """A cluster goes on while one node of each group is left: users see slower pages, or the same, and no error. What
    such a trial measures is another topology."""
    asked = [node for node, collector in trial.collectors() if collector == CLUSTER_STATUS]
    if not asked:
        return not_applicable("no management node was asked for data nodes")
    start, end = trial.run
    lost, parts, n = 0, [], 0
    for node in asked:
        frame, _ = trial.samples_of(node, CLUSTER_STATUS)
        in_run = frame[(frame["t_s"] >= start) & (frame["t_s"] < end)]
        seen = in_run.pivot_table(index="t_s", columns="metric", values="value")
        if seen.empty:
            return undecidable(f"{node} was not asked in the run", n=0)
        missing = seen[seen["data_nodes_started"] < seen["data_nodes"]]
        n += len(seen)
        lost += len(missing)
        if len(missing):
            fewest = missing.loc[missing["data_nodes_started"].idxmin()]
            parts.append(
                f"{node}: {fewest['data_nodes_started']:.0f} of {fewest['data_nodes']:.0f} data nodes were started, "
                f"first seen {missing.index[0] - start:.0f} s after the run began"
            )
        elif seen["data_nodes"].max() < 1:
            return undecidable(f"{node} named no data node", n=n)
    return exact(float(lost), 0.0, "readings", "; ".join(parts) or "all were started at each reading", n)
