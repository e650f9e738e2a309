"""Raw trials -> store. Verifies the hashes of sealed trials; the newest attempt of a trial counts; rebuilding from raw
gives equal tables."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis import choices
from ntier_analysis.contracts import Check, Manifest, Outcome, State, Validity
from ntier_analysis.contracts.files import RECORD_BYTES, read_bytes, read_json
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.errors import DataError
from ntier_analysis.labels import categorized, joined, of_parts
from ntier_analysis.objectives import in_time
from ntier_analysis.statistics import throughput as rates
from ntier_analysis.statistics.backlog import backlog
from ntier_analysis.store.schema import STORE_SCHEMA, TABLES
from ntier_analysis.store.tables import fingerprint, write_tables
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.generator import user_seconds
from ntier_analysis.validity.registry import validate
from ntier_analysis.verdict.store import judge_again, judged_by
from ntier_analysis.verdict.stored import analysis_version
from ntier_analysis.verdict.tables import judge

RULES = 5
"""Raised when the same raw files give other tables, so that stores are rebuilt."""
SEARCH = "search.json"
MICROSECONDS = 6
"""Decimals of a time in s."""
_ATTEMPT = re.compile(r"(?P<trial>.+?)(?:\.a(?P<attempt>\d+))?")


@dataclass
class Ingested:
    """What became of one sweep: number of trials and of valid ones, problems (one sentence each), whether it was
    unchanged since the last time, and whether other rules had judged it, so that only its verdict was made again."""

    sweep: str
    trials: int = 0
    valid: int = 0
    problems: list[str] = field(default_factory=list)
    unchanged: bool = False
    judged_again: bool = False


def sweep_folders(raw: Path, names: list[str]) -> list[Path]:
    """The sweeps in `raw`, or those named. Raises DataError naming what there is."""
    if not raw.is_dir():
        raise DataError(f"{raw}: no such folder of raw results")
    folders = {p.name: p for p in sorted(raw.iterdir()) if p.is_dir()}
    unknown = [n for n in names if n not in folders]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {raw}; there are: {', '.join(folders) or 'none'}")
    return [folders[n] for n in names] if names else list(folders.values())


def attempts(sweep: Path) -> dict[str, list[Path]]:
    """Trial -> folders of its attempts, oldest first."""
    tries: dict[str, list[tuple[int, Path]]] = {}
    for folder in sorted(p for p in sweep.iterdir() if p.is_dir() and not p.name.startswith(".")):
        match = _ATTEMPT.fullmatch(folder.name)
        if match and (folder / "manifest.json").exists():
            tries.setdefault(match["trial"], []).append((int(match["attempt"] or 1), folder))
    return {trial: [path for _, path in sorted(folders)] for trial, folders in tries.items()}


def ingest_sweep(sweep: Path, store: Path, *, force: bool = False, revalidate: bool = False) -> Ingested:
    """Rebuilds the tables of one sweep, unless its manifests are what they were at the last time. A folder without a
    trial (of a sweep that has just begun, or that was cleared) changes nothing: what the store has of it stays."""
    trials = attempts(sweep)
    result = Ingested(sweep.name, len(trials))
    decided = decisions(sweep)  # first: a record that cannot be read is said, whether there are trials or not
    if not trials:
        return result
    inputs = _inputs(sweep, trials, revalidate)
    if not force and fingerprint(store, sweep.name) == inputs:
        result.unchanged = True
        result.judged_again = judged_by(store, sweep.name) != analysis_version()
        if result.judged_again:
            judge_again(store, [sweep.name])
        return result
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    whose: dict[str, list[tuple[str, str]]] = {name: [] for name in TABLES}
    for name, folders in trials.items():
        try:
            parts = trial_tables(RawTrial(folders[-1]), len(folders), revalidate=revalidate)
        except DataError as error:
            result.problems.append(str(error))
            continue
        result.problems += parts.problems
        result.valid += int(parts.tables["trials"]["valid"].sum())
        for table, frame in apart(parts.tables).items():
            frames[table].append(frame)
            whose[table].append((sweep.name, name))
    tables = {
        t: _labelled(parts, ("sweep", "trial"), whose[t]) if parts else TABLES[t].empty_table().to_pandas()
        for t, parts in frames.items()
    }
    tables["decisions"] = decided
    tables |= judge(
        sweep.name, tables["trials"], tables["samples"], tables["nodes"], tables["interactions"], tables["decisions"]
    )
    write_tables(store, sweep.name, tables, inputs=inputs if not result.problems else "", lock=True)
    return result


def apart(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """A trial from above goes to a table of its own, and to no other: what else the store holds is of trials after a
    reset."""
    row = tables["trials"]
    if row["above"].isna().all():
        return {**tables, "trials": row.drop(columns=["above", "above_real"])}
    return {"from_above": row[[c for c in TABLES["from_above"].names if c in row]]}


def _labelled(parts: list[pd.DataFrame], columns: tuple[str, ...], labels: list[tuple[str, ...]]) -> pd.DataFrame:
    """The parts in one frame, with columns that say whose each row is. `labels`: of each part, a text per column."""
    return joined(parts).assign(**_whose(columns, labels, parts))


def _whose(
    columns: tuple[str, ...], labels: list[tuple[str, ...]], parts: list[pd.DataFrame]
) -> dict[str, pd.Categorical]:
    sizes = [len(part) for part in parts]
    return {n: of_parts(texts, sizes) for n, texts in zip(columns, zip(*labels, strict=True), strict=True)}


def decisions(sweep: Path) -> pd.DataFrame:
    """Rows of the table `decisions` from `search.json`, which a search for the capacity leaves beside its trials."""
    file = sweep / SEARCH
    empty = TABLES["decisions"].empty_table().to_pandas()
    if not file.exists():
        return empty
    try:
        record = read_json(file, RECORD_BYTES)
        rows = pd.DataFrame(record["decisions"], columns=["users", "reason", "why"])
        loads = len(record["grid"])
        rows = rows.astype({"users": "Int64"})
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: not the record of a search ({error!r})") from error
    return rows.assign(sweep=sweep.name, step=range(1, len(rows) + 1), grid_loads=loads)


def _inputs(sweep: Path, trials: dict[str, list[Path]], revalidate: bool) -> str:
    digest = hashlib.sha256(f"{STORE_SCHEMA} {RULES} {revalidate}".encode())
    if (sweep / SEARCH).exists():
        digest.update(read_bytes(sweep / SEARCH, RECORD_BYTES))
    for name, folders in sorted(trials.items()):
        digest.update(f"{name} {len(folders)}\n".encode())
        digest.update(record(folders[-1]))
    return digest.hexdigest()


def record(trial: Path) -> bytes:
    """A trial's manifest. Empty if it cannot be read; the trial is then reported as a problem, and the others are
    stored."""
    try:
        return read_bytes(trial / "manifest.json", RECORD_BYTES)
    except DataError:
        return b""


# ---- one trial -----------------------------------------------------------------------------------------------------


@dataclass
class TrialTables:
    tables: dict[str, pd.DataFrame]
    problems: list[str] = field(default_factory=list)


def trial_tables(trial: RawTrial, attempts_n: int = 1, *, revalidate: bool = False) -> TrialTables:
    """The rows of one trial, without its keys. A file that cannot be read makes the trial invalid and is a problem."""
    manifest, problems = trial.manifest, []
    altered = trial.altered_files()
    validity = manifest.validity
    if altered:
        problems.append(f"{trial.folder}: not as it was sealed: {'; '.join(altered[:3])}")
        validity = _with(validity, _broken("P2", "All files are there and as sealed", "files", "; ".join(altered[:5])))
        return TrialTables(_manifest_tables(trial, validity, attempts_n), problems)
    if manifest.state is State.COLLECTED and (validity is None or revalidate):
        validity = validate(trial)
    tables = _manifest_tables(trial, validity, attempts_n)
    if manifest.state is not State.COLLECTED:
        return TrialTables(tables, problems)
    parts = (_client_tables,) if manifest.above else (_client_tables, _sample_tables, _choice_table)
    for part in parts:
        try:
            part(trial, tables, problems)
        except DataError as error:
            problems.append(str(error))
    if problems and manifest.valid:
        validity = _with(validity, _broken("P2", "All files can be read", "unreadable", problems[0]))
        tables |= _manifest_tables(trial, validity, attempts_n, measured=tables["trials"])
    return TrialTables(tables, problems)


def _broken(id_: str, title: str, reason: str, detail: str) -> Check:
    return Check(id=id_, title=title, required=True, outcome=Outcome.FAIL, reason=reason, detail=detail)


def _with(validity: Validity | None, check: Check) -> Validity:
    kept = [c for c in validity.checks if c.id != check.id] if validity else []
    return Validity(valid=False, checks=[*kept, check])


def _manifest_tables(
    trial: RawTrial, validity: Validity | None, attempts_n: int, measured: pd.DataFrame | None = None
) -> dict[str, pd.DataFrame]:
    manifest = trial.manifest
    valid = manifest.state is State.COLLECTED and validity is not None and validity.valid
    reasons = validity.reasons if validity else []
    if manifest.state is not State.COLLECTED:
        reasons = [str(manifest.state.value)]
    row = _identity(manifest) | {
        "valid": valid,
        "invalid_reasons": ", ".join(reasons),
        "attempts": attempts_n,
    }
    trials = pd.DataFrame([row]) if measured is None else measured.assign(**{k: [v] for k, v in row.items()})
    return {
        "trials": trials,
        "checks": pd.DataFrame([_check_row(c) for c in validity.checks] if validity else []),
        "nodes": pd.DataFrame(
            [
                {
                    "node": n.name,
                    "tier": n.tier,
                    "node_type": n.node_type,
                    "role": n.role,
                    "cpu_cores": n.cpu_cores or n.cores,
                    "memory_bytes": n.memory_bytes,
                    "disk_bytes_s": n.disk_bytes_s,
                    "network_bits_s": n.network_bits_s,
                }
                for n in manifest.nodes
            ]
        ).astype({"memory_bytes": "Int64"}),
    }


def _identity(manifest: Manifest) -> dict:
    phases = {p.name: p for p in manifest.phases}
    run, up, down = (phases.get(n) for n in ("run", "ramp_up", "ramp_down"))
    copied = [
        "topology",
        "mix",
        "middleware",
        "users",
        "users_real",
        "above",
        "above_real",
        "scale",
        "rep",
        "seed",
        "attempt",
        "data_profile",
        "target",
        "git_commit",
        "slo_ms",
    ]
    return (
        {name: getattr(manifest, name) for name in copied}
        | {
            "scale": manifest.scale if manifest.system is None or manifest.system.scaled else 1.0,
            "policy": manifest.soft_resources.get("middleware_policy"),
            "tie": manifest.soft_resources.get("middleware_tie"),
            "settings": _asked(manifest.settings),
            "state": manifest.state.value,
            "failure": manifest.failure or "",
            "run_start_s": run.start_s if run else None,
            "run_end_s": run.end_s if run else None,
            "ramp_up_start_s": up.start_s if up else None,
            "ramp_down_end_s": down.end_s if down else None,
        }
        | _system(manifest)
    )


def _asked(settings: dict | None) -> str | None:
    """The same settings are the same text."""
    if settings is None:
        return None
    others = {k: v for k, v in settings.items() if k not in ("middleware_policy", "middleware_tie")}
    return json.dumps(others, sort_keys=True)


def _system(manifest: Manifest) -> dict:
    """What the store keeps of the system; of a manifest that names none the columns stay empty, as they were."""
    system = manifest.system
    if system is None:
        return {"think_time_s": manifest.think_time_s}
    return {
        "think_time_s": manifest.think_time_s if system.load_model is LoadModel.CLOSED else None,
        "tiers": ",".join(system.order),
        "system": system.model_dump_json(exclude={"factor": {"value"}}),
        "load_model": system.load_model.value,
        "factor": system.factor.name,
        "factor_unit": system.factor.unit,
        "factor_value": system.factor.value,
    }


def _check_row(check: Check) -> dict:
    return check.model_dump() | {"outcome": check.outcome.value}


def _client_tables(trial: RawTrial, tables: dict[str, pd.DataFrame], _problems: list[str]) -> None:
    frame, (start, end) = trial.interactions, trial.run
    names = ["t_s", "interaction", "response_time_ms", "ok", "bytes", "client"]
    tables["interactions"] = frame[names].assign(phase=trial.phase_of(frame["t_s"].to_numpy()))
    row = summary(frame, start, end, trial.manifest.slo_ms, trial.system.objectives)
    cut = _cut_off(trial) if trial.wrote("users.csv") else 0
    row["pending"] = int(((frame["start_s"] < end) & (frame["t_s"] >= end)).sum()) + cut
    if trial.load_model is LoadModel.CLOSED and trial.wrote("thinks.csv"):
        completed = row["interactions"] + row["errors"]
        row["think_measured_s"] = user_seconds(trial)["think"] / completed if completed else float("nan")
        tables["thinks"] = _think_table(trial)
    if trial.load_model is LoadModel.WORK:
        row["think_measured_s"] = _paused_s(trial)
    if trial.load_model is LoadModel.OPEN:
        row |= _arrivals(trial, row["pending"])
    if trial.manifest.above:
        late = rates.throughput(frame.loc[frame["ok"], "t_s"].to_numpy(), (start + end) / 2, end)
        row |= {"late_throughput_per_s": late.value, "late_throughput_high_per_s": late.high}
    tables["trials"] = tables["trials"].assign(**{k: [v] for k, v in row.items()})


def _cut_off(trial: RawTrial) -> int:
    """Interactions under way at the end of the run that had no answer when their users ended."""
    users, end = trial.users, trial.run[1]
    return int(((users["pending_s"] > 0) & (users["end_s"] - users["pending_s"] < end) & (users["end_s"] >= end)).sum())


def _paused_s(trial: RawTrial) -> float:
    """Seconds per completed interaction in which a worker waited for no answer: what the answers leave of the time of
    the workers that the heartbeat counts. NaN without either."""
    start, end = trial.run
    beats = trial.progress[trial.progress["t_s"].between(start, end)]
    done = trial.interactions[trial.interactions["t_s"].between(start, end, inclusive="left")]
    if beats.empty or done.empty:
        return float("nan")
    workers = float(beats.groupby("client")["users"].mean().sum())
    return max(0.0, (workers * (end - start) - done["response_time_ms"].sum() / 1000) / len(done))


def _arrivals(trial: RawTrial, pending: int) -> dict:
    """Interactions begun, by the heartbeat; those that were answered are in the list of interactions."""
    start, end = trial.run
    every = []
    for name, beats in trial.progress.groupby("client"):
        t = beats["t_s"].to_numpy(float)
        ended = np.sort(trial.interactions.loc[trial.interactions["client"] == name, "t_s"].to_numpy())
        begun, inside = beats["started"].to_numpy(float), beats["in_flight"].to_numpy(float)
        inside = np.where(np.isfinite(inside), inside, begun - np.searchsorted(ended, t, side="right"))
        every.append(backlog(t, begun, inside, start, end))
    at_end = sum(b.at_end for b in every)
    return {
        "offered_per_s": sum(b.offered_per_s for b in every),
        "backlog_growth_per_s": sum(b.growth_per_s for b in every),
        "backlog_error_per_s": float(np.sqrt(sum(b.error_per_s**2 for b in every))),
        "pending": max(0, round(at_end)) if np.isfinite(at_end) else pending,
    }


def summary(
    frame: pd.DataFrame, start: float, end: float, slo_ms: float | None, own: Mapping[str, float] | None = None
) -> dict:
    """Throughput, goodput and response times of the run phase from `t_s, interaction, response_time_ms, ok`. Errors do
    not count as throughput, and their times enter no percentile. `own`: objectives of single interactions."""
    run = frame[(frame["t_s"] >= start) & (frame["t_s"] < end)]
    good = run[run["ok"]]
    times, response = good["t_s"].to_numpy(), good["response_time_ms"].to_numpy()
    rate = rates.throughput(times, start, end)
    within = int(in_time(good, slo_ms, own or {}).sum())
    return {
        "throughput_per_s": rate.value,
        "throughput_low_per_s": rate.low,
        "throughput_high_per_s": rate.high,
        "goodput_per_s": within / (end - start),
        "response_time_mean_ms": float(response.mean()) if len(response) else float("nan"),
        "response_time_p50_ms": rates.percentile(response, 0.50),
        "response_time_p95_ms": rates.percentile(response, 0.95),
        "response_time_p99_ms": rates.percentile(response, 0.99),
        "errors": len(run) - len(good),
        "interactions": len(good),
        "idc": rates.dispersion(run["t_s"].to_numpy(), start, end),
    }


def _think_table(trial: RawTrial) -> pd.DataFrame:
    thinks = trial.thinks.assign(phase=trial.phase_of(trial.thinks["end_s"].to_numpy()))
    thinks["overshoot"] = thinks["actual_ms"] - thinks["drawn_ms"]
    groups = thinks.groupby(["phase", "state"], sort=True)
    return groups.agg(
        n=("drawn_ms", "size"),
        drawn_mean_ms=("drawn_ms", "mean"),
        actual_mean_ms=("actual_ms", "mean"),
        overshoot_mean_ms=("overshoot", "mean"),
        overshoot_max_ms=("overshoot", "max"),
    ).reset_index()


def _choice_table(trial: RawTrial, tables: dict[str, pd.DataFrame], _problems: list[str]) -> None:
    choice_rows = choices.of_trial(trial)
    if choice_rows is not None:
        tables["choices"] = choice_rows


def _sample_tables(trial: RawTrial, tables: dict[str, pd.DataFrame], problems: list[str]) -> None:
    """All collectors' samples, on the controller's clock. One unreadable file is a problem; the others are kept."""
    parts, whose = [], []
    for node, collector in trial.collectors():
        try:
            frame, _ = trial.samples_of(node, collector)
        except DataError as error:
            problems.append(str(error))
            continue
        if trial.own_machines and (ahead := trial.clock_ahead_s(node)):
            frame = frame.assign(t_s=(frame["t_s"] - ahead).round(MICROSECONDS))
        tier = trial.nodes[node].tier if node in trial.nodes else node
        source = "cgroup" if collector.startswith("cgroup") else collector
        parts.append(frame)
        whose.append((node, tier, source))
    if not parts:
        return
    frame = categorized(pd.concat(parts, ignore_index=True))
    frame = frame.assign(**_whose(("node", "tier", "source"), whose, parts))
    frame["phase"] = trial.phase_of(frame["t_s"].to_numpy())
    repeated = frame.duplicated(["node", "source", "resource", "item", "metric", "t_s"])
    if repeated.any():
        first = frame[repeated].iloc[0]
        raise DataError(
            f"{trial.folder}: {first['metric']} of {first['node']} occurs twice at {first['t_s']!r} ({first['source']})"
        )
    frame["value"] = frame["value"].replace([np.inf, -np.inf], np.nan)
    tables["samples"] = frame
