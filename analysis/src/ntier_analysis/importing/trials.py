"""Imported trials: their checks, and how they get into a store that may hold others."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.errors import DataError
from ntier_analysis.setting import IMPORTED
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import check_rows, read_table, sweeps, to_table, write_tables
from ntier_analysis.validity.imported import Imported, checks, like_shares, not_validated, reasons
from ntier_analysis.verdict.tables import judge
from ntier_analysis.wording import counted

TARGET = IMPORTED
MEASURED = ("trials", "samples", "nodes", "interactions")
"""Tables that an import brings; the others are made from them."""

MANY_NAMES = 200
"""Of interactions: if there are more, the import warns. Nobody writes as many by hand (a bulletin board has 24)."""

MOST_NODES = 999
"""Of a tier."""

Frames = dict[str, pd.DataFrame]


def unmeasured(counts: dict[str, int], tiers: list[str], names: set[str]) -> list[tuple[str, str]]:
    """(name, tier) of the nodes that the topology has beside those that were measured. `tiers`: of each of these."""
    found: list[tuple[str, str]] = []
    for tier, count in counts.items():
        if count > MOST_NODES:
            raise DataError(f"the topology has {count} nodes of tier {tier}, allowed are at most {MOST_NODES}")
        free = (name for k in itertools.count(1) if (name := f"{tier}{k}") not in names)
        found += [(next(free), tier) for _ in range(count - tiers.count(tier))]
    return found


def checked(tables: Frames, single: bool, *, think_time_given: bool = True, unknown: tuple[str, ...] = ()) -> Frames:
    """The tables of a sweep with the checks of its trials, and `valid`, `invalid_reasons`, `not_validated` by them.
    `single`: there are single interactions, but maybe not of each trial. `unknown`: what else the files do not tell. A
    trial that its file calls invalid stays so."""
    trials, samples = tables["trials"].reset_index(drop=True), tables["samples"]
    shares = like_shares(samples)
    by_trial = {name: dict(iter(tables[name].groupby("trial"))) for name in ("samples", "nodes", "interactions")}
    rows, columns = [], {"valid": [], "invalid_reasons": [], "not_validated": []}
    for _, row in trials.iterrows():
        mine = {name: parts.get(row["trial"], tables[name].iloc[:0]) for name, parts in by_trial.items()}
        done = mine["interactions"] if single and len(mine["interactions"]) else None
        trial = Imported(row, mine["samples"], mine["nodes"], done, shares)
        told = bool(row["valid"])
        outcomes = checks(trial) if told else []
        wrong = reasons(outcomes) if told else [row["invalid_reasons"] or "as imported"]
        rows += [_row(c) | {"sweep": row["sweep"], "trial": row["trial"]} for c in outcomes]
        columns["valid"].append(not wrong)
        columns["invalid_reasons"].append(", ".join(wrong))
        columns["not_validated"].append("; ".join([not_validated(trial, think_time_given=think_time_given), *unknown]))
    made = {"trials": trials.assign(**columns), "samples": samples.drop(columns="unit_given", errors="ignore")}
    return tables | made | ({"checks": pd.DataFrame(rows)} if rows else {})


def _row(check: Check) -> dict:
    return check.model_dump() | {"outcome": check.outcome.value}


def stored(store: Path, sweep: str) -> Frames | None:
    """The tables of a sweep that the store holds, None if it has no such sweep. Raises DataError if it was measured."""
    if not (store / "trials").is_dir() or sweep not in sweeps(store):
        return None
    tables = {name: read_table(store, name, sweep) for name in TABLES}
    trials = tables["trials"]
    if len(trials) and not (trials["not_validated"].notna() | (trials["target"] == TARGET)).all():
        raise DataError(f"{store}: sweep {sweep} was not made by this import; choose another name, or another store")
    return tables


def same(before: Frames, now: Frames) -> bool:
    """Whether an import would change nothing of what was brought before."""
    return all(to_table(name, before[name]).equals(to_table(name, now[name])) for name in MEASURED)


def keep(
    sweeps: dict[str, Frames], before: dict[str, Frames | None], store: Path, notices: list[str], *, replace: bool
) -> list[str]:
    """Judges and writes the sweeps, unless the store has them with other contents. Returns the notices with those of
    the checks."""
    judged = {}
    for sweep, tables in sweeps.items():
        old = before[sweep]
        if old is not None and not replace and not same(old, tables):
            raise DataError(f"{store}: sweep {sweep} is already stored with other contents; --replace replaces them")
        single = None if tables["interactions"].empty else tables["interactions"]
        judged[sweep] = tables | judge(sweep, tables["trials"], tables["samples"], tables["nodes"], single)
        notices += said(sweep, tables)
    for sweep, tables in judged.items():
        check_rows(store, sweep, tables)
    for sweep, tables in judged.items():
        write_tables(store, sweep, tables)
    return notices


def said(sweep: str, tables: Frames) -> list[str]:
    """Number of trials and samples, what is wrong with each trial, and what was not looked at."""
    trials, checks = tables["trials"], tables["checks"]
    valid = int(trials["valid"].sum())
    texts = []
    for row in trials[~trials["valid"].astype(bool)].itertuples():
        wrong = checks[(checks["trial"] == row.trial) & checks["required"] & (checks["outcome"] != Outcome.PASS.value)]
        details = "; ".join(f"{c.id} {c.title}: {c.detail}" for c in wrong.itertuples()) or row.invalid_reasons
        texts.append(f"{sweep}, {row.trial}: INVALID ({row.invalid_reasons}): {details}")
    timed = trials.dropna(subset=["run_start_s", "run_end_s"]).sort_values("run_start_s")
    for one, other in itertools.pairwise(timed.itertuples()):
        if other.run_start_s < one.run_end_s:
            texts.append(
                f"{sweep}: {one.trial} and {other.trial} ran at the same time; one test that is imported twice is no "
                "repetition: the intervals become too narrow"
            )
    if (names := tables["interactions"]["interaction"].nunique()) > MANY_NAMES:
        texts.append(
            f"{sweep}: {names:,} names of interactions, each an interaction of its own; do they carry numbers "
            "(/items/17)? then give all of a kind one name"
        )
    for text in dict.fromkeys(trials["not_validated"]):
        texts.append(f"{sweep}: not validated, because it was measured elsewhere: {text}")
    texts.append(f"{sweep}: {counted(len(trials), 'trial')}, {valid} valid, {len(tables['samples'])} samples")
    return texts
