"""One sweep of a store."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pandas as pd

from ntier_analysis.api.density import Density, Resource, density
from ntier_analysis.api.verdict import Verdict
from ntier_analysis.described import axis_of, loads
from ntier_analysis.errors import DataError
from ntier_analysis.figures.drawing import Drawing
from ntier_analysis.figures.interactions import by_interaction, long_interactions
from ntier_analysis.figures.load_axis import listed, over
from ntier_analysis.figures.style import THRESHOLD_PCT
from ntier_analysis.recovery import as_rows, recoveries
from ntier_analysis.report.data import SweepData, read_sweep
from ntier_analysis.report.drawings import LOAD_FIGURES, density_figures, load_figures, telling_trials
from ntier_analysis.report.measured import DENSITY_INTERVAL_S
from ntier_analysis.report.tables import demands, hottest
from ntier_analysis.store.schema import PHASES
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.moves import sentences
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json, sweep_scale
from ntier_analysis.wording import counted


class Sweep:
    """One topology, mix and middleware over a range of users. Frames have the columns of the store's tables, with the
    unit as the suffix of each name (`_s`, `_ms`, `_per_s`, `_pct`, `_bytes`); a share has none and is 0 to 1.
    Everything is read when it is first asked for.

    >>> import ntier_analysis as na
    >>> sweep = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere")
    >>> sweep
    Sweep 1-1-1-1M.browse_only.shardingsphere (1/1/1/1M): 13 trials, 13 valid, 1,000 to 13,000 users
    >>> sweep.topology, sweep.scale
    ('1/1/1/1M', 0.2)
    """

    def __init__(self, store: Path, name: str) -> None:
        self._store, self.name = store, name

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per trial, ordered by load: users (nominal), rep, valid, invalid_reasons, throughput_per_s with
        throughput_low_per_s and throughput_high_per_s (95 %), goodput_per_s, response_time_mean_ms, _p50_ms, _p95_ms,
        _p99_ms, errors (a count), run_start_s, run_end_s (UTC), think_time_s, ...

        >>> import ntier_analysis as na
        >>> trials = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").trials
        >>> trials[["users", "throughput_per_s", "response_time_mean_ms"]].round(1).head(2)
           users  throughput_per_s  response_time_mean_ms
        0   1000              28.4                    9.6
        1   2000              56.4                   14.9
        """
        rows = read_table(self._store, "trials", self.name)
        rows = rows.sort_values(["users", "rep", "trial"], ignore_index=True)
        return rows.assign(valid=rows["valid"].fillna(False).astype(bool))

    @property
    def topology(self) -> str:
        """In W/A/C/D notation."""
        return str(self.trials["topology"].iloc[0]) if len(self.trials) else ""

    @property
    def scale(self) -> float:
        """Node capacity and users are multiplied by it; nominal rates are measured ones divided by it."""
        return sweep_scale(self.trials)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict as it is stored; computed if the store is older than stored verdicts."""
        return Verdict(as_json(verdicts(self._store, [self.name])[0]), self.scale)

    @cached_property
    def saturation(self) -> pd.DataFrame:
        """One row per trial, node, resource and item: saturation (share of the run phase at or above 95 %, 0 to 1),
        saturation_low, saturation_high (95 %), n, n_missing, n_effective (samples), utilization_mean_pct,
        utilization_p95_pct, interval_s, and the trial's valid.

        >>> import ntier_analysis as na
        >>> rows = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").saturation
        >>> full = rows[(rows["node"] == "db1") & (rows["saturation_low"] > 0.5)]
        >>> int(full["users"].min())
        4000
        """
        rows = read_table(self._store, "saturation", self.name, filters=[("threshold_pct", "==", THRESHOLD_PCT)])
        valid = rows["trial"].map(self.trials.set_index("trial")["valid"]).astype(bool)
        rows = rows.assign(users=rows["trial"].map(self._loads))
        return rows.assign(valid=valid).sort_values(["users", "trial", "tier", "node", "resource"], ignore_index=True)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """Do the trials fit together? One row per check of the whole sweep: id, title, outcome (pass, fail or
        undecidable), value, limit, unit, n, standard_error, reason, detail. Empty if the store is from before 2026-12.

        >>> import ntier_analysis as na
        >>> checks = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").checks
        >>> set(checks["outcome"]) <= {"pass", "fail", "undecidable"}, "O1" in set(checks["id"])
        (True, True)
        """
        return read_table(self._store, "sweep_checks", self.name).drop(columns="sweep")

    @cached_property
    def recovery(self) -> pd.DataFrame:
        """Does throughput come back when users leave? One row per load that was also measured from above: users, above
        (most users before the run), after_reset_per_s, from_above_per_s, ratio (from above over after a reset), low,
        high (95 %), the same of the second half of the run (late_ratio, late_low, late_high), margin, outcome (comes
        back, comes back late, does not come back, undecided; of one pair of trials: came back in this pair), basis
        (what the interval is made of). No rows without such trials.

        >>> import ntier_analysis as na
        >>> len(na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").recovery)
        0
        """
        found = as_rows(recoveries(self.trials, read_table(self._store, "from_above", self.name)))
        ends = {f"{of}{end}": (f"{of}interval", i) for of in ("", "late_") for i, end in enumerate(("low", "high"))}
        rows = [r | {name: r[interval][i] for name, (interval, i) in ends.items()} for r in found]
        names = ["users", "above", "after_reset_per_s", "from_above_per_s", "ratio", "low", "high"]
        late = ["late_ratio", "late_low", "late_high"]
        return pd.DataFrame(rows, columns=[*names, *late, "margin", "outcome", "basis"])

    @cached_property
    def hottest(self) -> pd.DataFrame:
        """The server and resource with the largest saturation of each trial; index: trial."""
        return hottest(self._data)

    def samples(
        self, node: str | None = None, resource: str | None = None, metric: str | None = None, phase: str | None = "run"
    ) -> pd.DataFrame:
        """What the collectors read: trial, users (or the value of what the sweep is over), t_s (UTC, end of the
        sampling interval), phase, node, tier, resource, item (part of the resource), metric (with its unit as suffix),
        value, unit, source, interval_s. An argument that is None selects all. Raises DataError for a node, resource or
        metric that was not measured, naming those that were.

        >>> import ntier_analysis as na
        >>> sweep = na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere")
        >>> cpu = sweep.samples(node="db1", resource="cpu", metric="utilization_pct")
        >>> cpu["unit"].unique().tolist(), bool(cpu["value"].mean() > 50)
        (['pct'], True)
        >>> sweep.samples(node="db7")
        Traceback (most recent call last):
        ntier_analysis.errors.DataError: ... no node 'db7'; there are: app1, client1, db1, middleware1, web1
        """
        there = self._measured
        filters = [] if phase is None else [("phase", "=", phase)]
        if phase is not None and phase not in PHASES:
            raise DataError(f"{self.name}: phase {phase!r}: allowed are {', '.join(PHASES)}, None for all")
        for name, value in (("node", node), ("resource", resource), ("metric", metric)):
            if value is None:
                continue
            if value not in set(there[name]):
                where = " of ".join(
                    filter(None, [resource if name == "metric" else "", node if name != "node" else ""])
                )
                raise DataError(
                    f"{self.name}: no {name} {value!r}{f' in the samples of {where}' if where else ''}; there are: "
                    f"{', '.join(sorted(set(there[name]))) or 'none'}"
                )
            there = there[there[name] == value]
            filters.append((name, "=", value))
        rows = read_table(self._store, "samples", self.name, filters=filters or None)
        return rows.drop(columns="sweep").assign(users=rows["trial"].map(self._loads))

    def density(self, node: str, resource: str = "cpu", item: str | None = None) -> Density:
        """Density of a resource's utilization over the users. `item`: which part of the resource, if it has several
        (disks, pools). Raises DataError for a node, resource or item without a utilization, naming those that have one.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").density("db1", "tape")
        Traceback (most recent call last):
        ntier_analysis.errors.DataError: ... no resource 'tape' with a utilization of db1; there are: cpu...
        """
        rows = self.saturation
        for name, value in (("node", node), ("resource", resource), ("item", item)):
            there = sorted(set(rows[name]))
            if value is None and len(there) == 1:
                value = there[0]
            if value not in there:
                of = "" if name == "node" else f" with a utilization of {node}{f' {resource}' * (name == 'item')}"
                what = f"no {name} {value!r}{of}" if value is not None else f"{node} {resource} has several items"
                raise DataError(f"{self.name}: {what}; there are: {', '.join(there) or 'none'}")
            rows = rows[rows[name] == value]
        samples = self.samples(node, resource, "utilization_pct")
        # several collectors may measure a resource; the saturation says which one was trusted
        trusted = rows[["trial", "item", "source"]].drop_duplicates()
        mine = samples.merge(trusted, on=["trial", "item", "source"]).sort_values(["trial", "t_s"])
        tier = str(rows["tier"].iloc[0])
        of = Resource(node, tier, resource, str(rows["item"].iloc[0]))
        return density(mine, rows, of, self.scale, DENSITY_INTERVAL_S, axis_of(self.trials))

    @cached_property
    def demands(self) -> pd.DataFrame:
        """CPU that an interaction needs of each node, by the utilization law over the valid loads below saturation:
        node, tier, demand_ms, demand_error_ms, low_ms, high_ms (95 %; NaN with fewer than three loads), idle_cores,
        full_at_per_s (throughput at which its CPU is full), loads (different ones), p (of the test that one demand fits
        all loads), reason (why it is not known when its CPU is full; empty if it is). Nodes with a reason come first,
        since they may be full before all others; then the one that is full first.

        >>> import ntier_analysis as na
        >>> na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").demands["node"].tolist()
        ['db1', 'middleware1', 'app1', 'web1']
        """
        return demands(self._data)

    @cached_property
    def interactions(self) -> pd.DataFrame:
        """One row per completed interaction: trial, t_s (UTC), phase, interaction, response_time_ms, ok, bytes."""
        return self._data.interactions

    def by_interaction(self, users: float | None = None) -> pd.DataFrame:
        """One row per interaction of the run phase of the first valid trial at one load (users, or the value of what
        the sweep is over; None: the lowest): n (successes), errors (a count), mean_ms and max_ms of the successes,
        share_of_time (0 to 1; of the sum of their response times). Raises DataError for a load that has no valid
        trial."""
        valid = self._loads[self.trials.set_index("trial")["valid"]]
        there = sorted(valid.unique().tolist())
        chosen = users if users is not None else next(iter(there), None)
        if chosen not in there:
            axis = axis_of(self.trials)
            raise DataError(f"{self.name}: no valid trial with {axis.at(str(users))}; there are: {there}")
        trial = valid.index[valid == chosen][0]
        return by_interaction(self.interactions[self.interactions["trial"] == trial])

    @property
    def chains(self) -> list[str]:
        """What moves with the disk of each database, second by second: one sentence for each trial and database in
        which anything does, then what is known of the others: no link was found, or nothing was measured."""
        return sentences(self._data.with_disks)

    # ---- figures ----

    def figures(self, *names: str) -> list[Drawing]:
        """The report's figures over the loads: throughput, response time, utilization, pools, course of three trials.
        With names those of them that this sweep has: nothing is drawn of what was not measured. Raises DataError for a
        name that no sweep has.

        >>> import ntier_analysis as na
        >>> [d.name for d in na.Store.demo().sweep("1-1-1-1M.browse_only.shardingsphere").figures()][:2]
        ['throughput', 'response-time']
        """
        if unknown := [name for name in names if name not in LOAD_FIGURES]:
            raise DataError(f"{self.name}: no figure {unknown[0]!r}; there may be: {', '.join(LOAD_FIGURES)}")
        with over(self._data.axis):
            drawings = [pair.drawing for pair in load_figures(self._data)]
        return [d for d in drawings if d.name in names] if names else drawings

    def figure(self, name: str) -> Drawing:
        """One of `figures()` by its name. Raises DataError for an unknown one, naming those of this sweep."""
        figures = {d.name: d for d in self.figures()}
        if name not in figures:
            raise DataError(f"{self.name}: no figure {name!r}; there are: {', '.join(figures) or 'none'}")
        return figures[name]

    def densities(self) -> list[Drawing]:
        """The CPU of the node that limits first, as a surface and as a map; then every other node as a map."""
        with over(self._data.axis):
            return [pair.drawing for pair in density_figures(self._data)]

    def long_interactions(self) -> list[Drawing]:
        """Share of the response time that each interaction takes: lowest load, near the knee, highest load."""
        trials = self.trials.assign(users=loads(self.trials))
        chosen = telling_trials(trials[trials["valid"]], self.verdict.knee_users)
        with over(self._data.axis):
            return [long_interactions(self.interactions, t.trial, t.users) for t in chosen.itertuples()]

    # ---- inside ----

    @cached_property
    def _data(self) -> SweepData:
        return read_sweep(self._store, self.name)

    @cached_property
    def _loads(self) -> pd.Series:
        """Trial -> users, or the value of what the sweep is over."""
        return loads(self.trials).set_axis(self.trials["trial"])

    @cached_property
    def _measured(self) -> pd.DataFrame:
        columns = ["node", "resource", "metric"]
        return read_table(self._store, "samples", self.name, columns=columns).drop_duplicates()

    def __repr__(self) -> str:
        there = sorted(set(self._loads))
        loads = f", {axis_of(self.trials).at(f'{listed(there[:1])} to {listed(there[-1:])}')}" if there else ""
        counts = f"{counted(len(self.trials), 'trial')}, {int(self.trials['valid'].sum())} valid"
        return f"Sweep {self.name} ({self.topology}): {counts}{loads}"

    def _repr_html_(self) -> str:
        return self.verdict._repr_html_()
