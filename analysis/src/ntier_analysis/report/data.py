"""Everything a report needs of one sweep, read from the store once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts.implied import USERS
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.described import LoadAxis, loads, order_of
from ntier_analysis.errors import DataError
from ntier_analysis.figures import course, events, tiers
from ntier_analysis.figures.drawing import Origin
from ntier_analysis.figures.loads import Plateau
from ntier_analysis.figures.style import THRESHOLD_PCT
from ntier_analysis.places import raw_beside
from ntier_analysis.prediction.demands import tier_demands
from ntier_analysis.prediction.forecast import Forecast, forecast
from ntier_analysis.recovery import Recovery, recoveries
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.mix import expected_shares
from ntier_analysis.verdict.moves import Chain, Looked
from ntier_analysis.verdict.store import chains, verdicts, with_disks
from ntier_analysis.verdict.tables import as_json

OWN_COUNTERS = ["questions_per_s", "xact_commit_per_s"]
REPLICA_COLUMNS = ["trial", "node", "t_s", "item", "value"]


SAMPLE_COLUMNS = ["trial", "t_s", "phase", "node", "tier", "resource", "metric", "value", "source", "item"]
FIGURE_METRICS = sorted({*course.METRICS, *events.METRICS, *tiers.LEVEL_METRICS})
OTHER_RESOURCES = [("metric", "in", FIGURE_METRICS), ("resource", "!=", "cpu"), ("tier", "!=", "host")]


@dataclass(frozen=True)
class SweepData:
    """Frames with the columns of the store's tables; `saturation` at 95 % with the trials' `valid`; `cpu` and
    `used_cores`: samples of CPU utilization (percent of the node's capacity) and use (cores) in the run phase, with
    `users`. If the sweep is over another factor, the column `users` holds its values. `verdict`: as
    `ntier-analysis verdict --json` prints it. `manifests`: one per trial, none if imported."""

    sweep: str
    trials: pd.DataFrame
    saturation: pd.DataFrame
    cpu: pd.DataFrame
    used_cores: pd.DataFrame
    interactions: pd.DataFrame
    checks: pd.DataFrame
    sweep_checks: pd.DataFrame
    """Checks of all trials together; empty if the store is older than these checks."""
    nodes: pd.DataFrame
    verdict: dict
    manifests: list[dict]
    statements: pd.DataFrame
    """Statements per s of each replica (`item`) by the middlewares' counters, or, where these see connections only, by
    the databases' own (PostgreSQL: transactions); all phases; columns REPLICA_COLUMNS."""
    statements_by: str
    """Whose counters these are, in words."""
    choices: pd.DataFrame
    """The store's table choices; empty unless the middleware wrote a trace."""
    with_disks: dict[str, list[Looked]]
    """What was seen of the databases and their disks, by valid trial."""
    mix_targets: dict[str, float]
    """Share of each interaction in a long walk of the transition table, 0..1; empty if the table is not at hand."""
    samples: pd.DataFrame
    """Samples that the figures need of the other resources (disk, pools, queues, statements, events), all phases, all
    sources; columns SAMPLE_COLUMNS."""
    raw_trials: dict[str, RawTrial]
    """The raw trials that are still there, for what only logs tell; none if imported or moved away."""
    from_above: pd.DataFrame
    """Trials that came from above, which no other frame has; columns of the store's table."""
    stored_users: pd.Series
    """Trial -> its users, also if the sweep is over another factor."""

    @cached_property
    def chains(self) -> dict[str, list[Chain]]:
        """What moves with the disks of the databases, by trial."""
        return chains(self.with_disks)

    @cached_property
    def recovery(self) -> list[Recovery]:
        """Whether throughput comes back when users leave; empty without trials from above."""
        return recoveries(self.trials, self.from_above)

    @cached_property
    def run_samples(self) -> dict[str, pd.DataFrame]:
        """`samples` of the run phase, by trial."""
        run = self.samples[self.samples["phase"] == "run"]
        return {str(trial): rows for trial, rows in run.groupby("trial", sort=False)}

    @cached_property
    def forecast(self) -> Forecast | str:
        """What the closed model of the demands predicts, or why it cannot."""
        if self.verdict["load_model"] != LoadModel.CLOSED or self.verdict["factor"]["name"] != USERS:
            return "the closed model is one of users who think"
        try:
            tiers = tier_demands(self.trials, self.used_cores, self.nodes)
        except DataError as error:
            return str(error)
        known = self.plateau and not self.plateau.at_least  # of a lower bound no prediction is so many per cent off
        return forecast(tiers, self.trials, self.plateau.throughput_per_s if known else None)

    @property
    def load_name(self) -> str:
        """What the loads are called in tables: `users`, `workers`, or `sleep_s [s]`."""
        return self.axis.name

    @property
    def load_real(self) -> str:
        """Who makes the load, in tables: the number that really ran."""
        closed = self.verdict["load_model"] == LoadModel.CLOSED
        return "real" if self.factor[0] == USERS else "real users" if closed else "workers"

    @property
    def factor(self) -> tuple[str, str]:
        """Name and unit of what the sweep is over."""
        return self.verdict["factor"]["name"], self.verdict["factor"]["unit"]

    @property
    def order(self) -> tuple[str, ...]:
        """Tiers from the users inwards."""
        return order_of(self.trials)

    @property
    def axis(self) -> LoadAxis:
        """What figures are `load_axis.over`."""
        return LoadAxis(*self.factor, self.order, LoadModel(self.verdict["load_model"]).who)

    @property
    def topology(self) -> str:
        return str(self.trials["topology"].iloc[0])

    @property
    def scale(self) -> float:
        return float(self.trials["scale"].iloc[0])

    @property
    def command(self) -> str:
        """The command that repeats the sweep; empty if unknown (imported data)."""
        return next((m["command"] for m in self.manifests if m.get("command")), "")

    @property
    def plateau(self) -> Plateau | None:
        value, knee = self.verdict["max_throughput_per_s"], self.verdict["knee_users"]
        if value is None or knee is None or self.verdict["verdict"] == "none":  # nothing limits, or nothing is known
            return None
        return Plateau(value, *self.verdict["max_throughput_interval"], knee, self.verdict["max_throughput_at_least"])

    @property
    def origin(self) -> Origin:
        commits = sorted(self.trials["git_commit"].dropna().unique())
        trials = tuple(self.trials["trial"])
        return Origin(self.sweep, self.topology, trials, self.scale, ", ".join(commits) or "unknown", self.command)


def read_sweep(store: Path, sweep: str, raw: Path | None = None) -> SweepData:
    """Reads one sweep. `raw`: the raw results, for versions, soft resources and the mix's target; by default the folder
    raw beside the store, which may be missing. Raises DataError if the store does not hold the sweep."""
    known = sweeps(store)
    if sweep not in known:
        raise DataError(f"sweep {sweep!r} is not in {store}; there are: {', '.join(known) or 'none'}")
    trials = read_table(store, "trials", sweep)
    if trials.empty:
        raise DataError(f"sweep {sweep} in {store} has no trial, so there is nothing to report")
    stored_users = trials.set_index("trial")["users"]
    trials["users"] = loads(trials)
    trials = trials.sort_values(["users", "rep", "trial"], ignore_index=True)
    trials["valid"] = trials["valid"].fillna(False).astype(bool)
    for text in ("invalid_reasons", "failure"):
        trials[text] = trials[text].astype(object).where(trials[text].notna(), "")
    by_trial = trials.set_index("trial")
    saturation = read_table(store, "saturation", sweep, filters=[("threshold_pct", "==", THRESHOLD_PCT)])
    saturation["users"] = saturation["trial"].map(by_trial["users"])
    saturation["valid"] = saturation["trial"].map(by_trial["valid"]).astype(bool)
    run_cpu = [("resource", "==", "cpu"), ("metric", "in", ["utilization_pct", "used_cores"]), ("phase", "==", "run")]
    samples = read_table(store, "samples", sweep, filters=run_cpu)
    samples["users"] = samples["trial"].map(by_trial["users"])
    # several collectors may measure a CPU; the saturation says which one was trusted
    trusted = saturation[["trial", "node", "item", "source"]].drop_duplicates()
    cpu = samples[samples["metric"] == "utilization_pct"].merge(trusted, on=list(trusted.columns))
    verdict = as_json(verdicts(store, [sweep])[0])
    statements, statements_by = _statements(store, sweep, order_of(trials))
    raw_trials = _raw_trials(raw / sweep if raw else raw_beside(store, sweep), trials)
    return SweepData(
        sweep=sweep,
        trials=trials,
        saturation=saturation,
        cpu=cpu.sort_values(["trial", "node", "t_s"], ignore_index=True),
        used_cores=samples[samples["metric"] == "used_cores"],
        interactions=read_table(store, "interactions", sweep),
        checks=read_table(store, "checks", sweep),
        sweep_checks=read_table(store, "sweep_checks", sweep),
        nodes=read_table(store, "nodes", sweep),
        statements=statements,
        statements_by=statements_by,
        choices=read_table(store, "choices", sweep),
        with_disks=with_disks(store, sweep),
        verdict=verdict,
        manifests=[t.manifest.model_dump(mode="json") for t in raw_trials],
        mix_targets=_mix_targets(raw_trials),
        samples=read_table(store, "samples", sweep, columns=SAMPLE_COLUMNS, filters=OTHER_RESOURCES),
        raw_trials={t.manifest.trial: t for t in raw_trials},
        from_above=read_table(store, "from_above", sweep),
        stored_users=stored_users,
    )


def _statements(store: Path, sweep: str, order: tuple[str, ...]) -> tuple[pd.DataFrame, str]:
    """Of one tier: nodes of several that count statements are no replicas of each other."""
    seen = [("source", "==", "middleware_status"), ("metric", "==", "statements_per_s")]
    executed = read_table(store, "samples", sweep, columns=REPLICA_COLUMNS, filters=seen)
    if len(executed):
        return executed, "the middleware's counters"
    columns = [*REPLICA_COLUMNS, "tier", "metric"]
    own = read_table(store, "samples", sweep, columns=columns, filters=[("metric", "in", OWN_COUNTERS)])
    innermost = [tier for tier in order if (own["tier"] == tier).any()][-1:]
    own = own[own["tier"].isin(innermost)] if innermost else own
    counted = "transactions" if (own["metric"] == OWN_COUNTERS[1]).any() else "statements"
    return own.assign(item=own["node"])[REPLICA_COLUMNS], f"the databases' own counters ({counted})"


def _raw_trials(folder: Path, trials: pd.DataFrame) -> list[RawTrial]:
    """The raw trials that the rows come from (the newest attempts); those that are gone are left out."""
    raw_trials = []
    for row in trials.itertuples():
        attempt = int(row.attempt) if row.attempt and row.attempt > 1 else 1
        path = folder / (row.trial if attempt == 1 else f"{row.trial}.a{attempt}")
        if (path / "manifest.json").is_file():
            raw_trials.append(RawTrial(path))
    return raw_trials


def _mix_targets(raw_trials: list[RawTrial]) -> dict[str, float]:
    """Taken from the first trial that has it: a failed trial has a table, but none of its users' interactions."""
    for trial in raw_trials:
        if trial.path(f"config/{trial.manifest.mix}.csv"):
            with suppress(DataError):
                return expected_shares(trial)
    return {}
