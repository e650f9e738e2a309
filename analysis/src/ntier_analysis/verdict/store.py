"""Verdicts of a whole store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts.layout import Layout
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.described import order_of, system_of
from ntier_analysis.errors import DataError
from ntier_analysis.places import table_file
from ntier_analysis.setting import IMPORTED, MUST_EQUAL, plain, told
from ntier_analysis.store.tables import locked, read_table, read_values, sweeps, table_inputs, write_tables
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.moves import CHAIN_METRICS, Chain, Looked, long_chains, looked_at
from ntier_analysis.verdict.replicas import added, with_replicas
from ntier_analysis.verdict.search import Goal, Step, next_step
from ntier_analysis.verdict.settings import only_setting, with_settings
from ntier_analysis.verdict.stored import from_text, made_elsewhere
from ntier_analysis.verdict.tables import NEEDED_METRICS, judge, sweep_scale, sweep_verdict, trial_data

IDLE_S = 1.0
"""Before the first user: nobody asks the servers anything then (REST_S of the harness), and each collector that reads
once a second does so once. In the last 3 s, 0.006 cores were measured on a MySQL node, as much as the utilization
law's intercept over 13 loads; since then trials begin sooner after the last question."""


def verdicts(store: Path, names: list[str]) -> list[SweepVerdict]:
    """The stored verdicts of the sweeps named (none: of all); computed from the tables only where a store of before
    2026-12 holds none. Sweeps of the store whose topologies differ by the nodes of one tier are witnesses of each
    other, those that are not named too. Raises DataError for an unknown sweep."""
    wanted = named(store, names)
    setting = {name: _setting(store, name) for name in sweeps(store)}
    found = [_verdict(store, name) for name in [*wanted, *_witnesses(wanted, setting)]]
    alike = {name: tuple(rest) for name, (_, *rest) in setting.items()}
    layouts = {name: layout for name, (layout, *_) in setting.items()}
    kinds = {v.sweep: _kinds(store, v.sweep) for v in found if v.verdict == "single"}
    imports = {name for name, (_, same, _) in setting.items() if (IMPORTED,) in same}
    heard = with_replicas(found, alike, layouts, kinds, imports)
    heard = with_settings(heard, setting)[: len(wanted)]
    return [replace(v, evidence=[*v.evidence, *made_elsewhere(v, store)]) for v in heard]


def own_verdict(store: Path, name: str) -> SweepVerdict:
    """The verdict of one sweep, without what others of the store say of it; only its own files are read."""
    return _verdict(store, name)


def judge_again(store: Path, names: list[str]) -> list[SweepVerdict]:
    """Judges the sweeps named (none: all) by the rules of this program, from the tables, and writes what was found into
    the store. Raises DataError for an unknown sweep."""
    wanted = named(store, names)
    for name in wanted:
        while not _judged(store, name):
            pass
    return verdicts(store, wanted)


def _judged(store: Path, name: str) -> bool:
    """Whether the tables that it judged are still those of the store; only then it writes. Judging a large sweep takes
    longer than others wait for the lock, so it is not held meanwhile."""
    before = _state(store, name)
    made = judge(name, *_tables(store, name))
    with locked(store):
        if _state(store, name) != before:
            return False
        write_tables(store, name, made, inputs=before[0])
    return True


def _state(store: Path, name: str) -> tuple[str, int, int]:
    """Differs after each ingest or import of the sweep: files are replaced, never changed."""
    inputs, file = table_inputs(store, "trials", name), table_file(store, "trials", name).stat()
    return inputs, file.st_ino, file.st_mtime_ns


def judged_by(store: Path, name: str) -> str:
    """By whose rules the stored verdict of a sweep was made; empty if there is none."""
    found = _stored(store, name)
    return found.analysis_version if found else ""


def named(store: Path, names: list[str]) -> list[str]:
    """The sweeps named (none: all of the store). Raises DataError for an unknown one, naming what there is."""
    there = sweeps(store)
    unknown = [n for n in names if n not in there]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(there) or 'none'}")
    return names or there


def _setting(store: Path, name: str) -> tuple[Layout, tuple, str]:
    """The nodes of a sweep, what must be equal for another one to be a witness, and the settings asked for."""
    file = table_file(store, "trials", name)
    state = file.stat() if file.exists() else None  # if it has gone meanwhile, reading it says so
    return _setting_of(store, name, state and (state.st_ino, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=4096)
def _setting_of(store: Path, name: str, state: tuple[int, int, int] | None) -> tuple[Layout, tuple, str]:
    """`state` differs after each ingest (`_state`). Kept, since each verdict asks for all sweeps of the store: of 200
    sweeps, reports of all would read 40,000 files else."""
    trials, _ = read_values(store, "trials", name, ["topology", "tiers", *MUST_EQUAL])
    topology, order = (next((str(t) for t in trials[c] if t is not None), "") for c in ("topology", "tiers"))
    alike = {c: told(tuple(sorted({str(plain(v, c)) for v in trials[c] if v is not None})), c) for c in MUST_EQUAL}
    asked = alike.pop("settings")
    return Layout.of(topology, order), tuple(alike.values()), asked[0]


def _kinds(store: Path, name: str) -> dict[str, Replicas]:
    """What the nodes of each tier of a sweep do for each other."""
    trials = pd.DataFrame(read_values(store, "trials", name, ["system", "tiers", "load_model", "factor", "users"])[0])
    return {t.name: t.replicas for t in system_of(trials).tiers} if len(trials) else {}


def _witnesses(wanted: list[str], setting: dict[str, tuple[Layout, tuple, str]]) -> list[str]:
    """Sweeps beside those wanted that have more or fewer nodes in one tier of one of them, or another value of one
    setting, and are else alike."""

    def related(a: str, b: str) -> bool:
        (here, *one), (there, *other) = setting[a], setting[b]
        more = one == other and (added(here, there) or added(there, here))
        return bool(more or only_setting(setting[a], setting[b]))

    return [name for name in setting if name not in wanted and any(related(name, w) for w in wanted)]


def _verdict(store: Path, name: str) -> SweepVerdict:
    found = _stored(store, name)
    return found or sweep_verdict(name, *_tables(store, name)).verdict


def _stored(store: Path, name: str) -> SweepVerdict | None:
    """None if the sweep has no stored verdict, or one that was made of other tables than those that are there."""
    if not table_file(store, "verdicts", name).exists():
        return None
    found, inputs = read_values(store, "verdicts", name, ["document"])
    text = next(filter(None, found["document"]), None)
    return from_text(text) if text and inputs == table_inputs(store, "trials", name) else None


def _tables(store: Path, name: str) -> tuple[pd.DataFrame | None, ...]:
    """What `judge` and `sweep_verdict` take after the name."""
    return (
        read_table(store, "trials", name),
        read_table(store, "samples", name, categories=True),
        read_table(store, "nodes", name),
        read_table(store, "interactions", name),
        decisions(store, name),
    )


def chains(looked: dict[str, list[Looked]]) -> dict[str, list[Chain]]:
    """Series that move with the disks of the databases, by trial; trials without a chain are left out."""
    found = {trial: long_chains(seen) for trial, seen in looked.items()}
    return {trial: linked for trial, linked in found.items() if linked}


def with_disks(store: Path, name: str) -> dict[str, list[Looked]]:
    """What was seen of each database, and what moves with its disk, in each valid trial of a sweep."""
    trials = read_table(store, "trials", name).sort_values(["users", "trial"])
    nodes = read_table(store, "nodes", name)
    wanted = [("metric", "in", CHAIN_METRICS)]
    samples = read_table(store, "samples", name, filters=wanted)
    by_trial = dict(iter(samples.groupby("trial")))
    deepest = order_of(trials)[-1]
    found = {}
    for row in trials[trials["valid"].fillna(False).astype(bool)].itertuples():
        databases = nodes.loc[(nodes["trial"] == row.trial) & (nodes["tier"] == deepest), "node"].unique()
        mine = by_trial.get(row.trial, samples[:0])
        found[row.trial] = looked_at(mine, sorted(databases), row.run_start_s, row.run_end_s)
    return found


def decisions(store: Path, name: str) -> pd.DataFrame | None:
    """What a search decided; None for a store that was written before there were searches."""
    return read_table(store, "decisions", name)


def searched(store: Path, name: str, goal: Goal, without: Iterable[str] = ()) -> Step:
    """The next step of a search from what the store holds of its sweep (perhaps nothing); the trials in `without` are
    not finished. Raises DataError if there is no store."""
    if name not in sweeps(store):
        return next_step([], goal)
    skipped = set(without)
    trials = read_table(store, "trials", name)
    trials = trials[~trials["trial"].isin(skipped)]
    if trials.empty:
        return next_step([], goal)
    samples = read_table(store, "samples", name, filters=[("metric", "in", list(NEEDED_METRICS))])
    nodes = read_table(store, "nodes", name)
    done = read_table(store, "interactions", name, columns=["trial", "t_s", "ok", "response_time_ms"])
    data, _ = trial_data(trials, samples, nodes, done)
    return next_step(data, goal, sweep_scale(trials), cores_of_idle(idle_use(trials, samples)))


def idle_use(trials: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """What each node uses without load, cores: the samples of the last IDLE_S before the ramp-up, when the collectors
    already run."""
    use = samples[(samples["metric"] == "used_cores") & (samples["phase"] == "outside")]
    begin = use["trial"].map(trials.set_index("trial")["ramp_up_start_s"]).astype(float)
    return use.loc[(use["t_s"] <= begin) & (use["t_s"] > begin - IDLE_S), ["node", "value"]].astype({"node": str})


def cores_of_idle(use: pd.DataFrame) -> dict[str, float]:
    """Node -> its mean over the trials."""
    return use.groupby("node")["value"].mean().dropna().to_dict()
