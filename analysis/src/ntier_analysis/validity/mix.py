"""M: do the users choose as the mix's table says, and is the mix that comes of it the expected one?"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import read_csv
from ntier_analysis.statistics import distributions as stats
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, not_applicable, undecidable
from ntier_analysis.wording import counted

POINTS = 2.0
MIN_SHARE = 0.01
MIN_N = 500
UNVISITED_EXPECTED = 20
STEPS = 200_000
"""Requests of the walk: shares are known to 0.2 points then, a tenth of the limit."""
MIN_USERS = 20
FALSE_ALARM = 2 * stats.norm.sf(3)
"""Of a whole check: that of three standard errors, however many shares the check looks at."""
CLOCK_S = 0.005
"""A think's start and its request's end are read from two clocks of the JVM that differ by milliseconds."""

GO_ON = {"Back", "EndOfSession"}

NO_WALK = "config/driver.json names no table of transitions"

USERS, AUTHORS = "users", "authors"
"""Kinds of users: authors have a table of their own if the trial holds one, else all are `users`."""


class Table(NamedTuple):
    """A mix: its first state, and per state the targets with their cumulative probabilities."""

    home: str
    rows: dict[str, tuple[list[str], list[float]]]

    def probability(self, state: str, target: str) -> float:
        """Of drawing the target; what a row lacks of 1 is a stay, what it has beyond 1 is cut off."""
        targets, cumulative = self.rows[state]
        ends = np.minimum([0.0, *cumulative], 1.0)
        drawn = sum(float(b - a) for t, a, b in zip(targets, ends, ends[1:], strict=False) if t == target)
        return drawn + float(1 - ends[-1]) * (state == target)

    def has_back(self, state: str) -> bool:
        """Whether a probability above 0 is given for Back, as the client sees it; a line of a full table may have 0."""
        targets, cumulative = self.rows[state]
        return any(t == "Back" and b > a for t, a, b in zip(targets, [0.0, *cumulative], cumulative, strict=False))


def tables(trial: RawTrial) -> dict[str, Table]:
    """Kind of users -> what it walks: `config/<mix>.csv`, and `config/<mix>.authors.csv` of a mix with authors. Raises
    DataError if the trial holds no table of its mix."""
    tables_of = {USERS: _table(trial.required(f"config/{trial.manifest.mix}.csv"))}
    authors = _authors_table(trial)
    return tables_of | ({AUTHORS: _table(authors)} if authors else {})


def _walked(trial: RawTrial) -> bool:
    """Whether users walk a table, by what the driver was told: a table that is missing excuses nothing."""
    return trial.strict or trial.path(f"config/{trial.manifest.mix}.csv") is not None


def _authors_table(trial: RawTrial) -> Path | None:
    return trial.path(f"config/{trial.manifest.mix}.authors.csv")


def _table(path: Path) -> Table:
    """from,to,probability"""
    read = read_csv(path, {"from": "text", "to": "text", "probability": "number"})
    rows = {
        str(state): (list(part["to"]), list(part["probability"].cumsum()))
        for state, part in read.groupby("from", sort=False)
    }
    return Table(str(read["from"].iloc[0]), rows)


def _kinds(trial: RawTrial, rows: pd.DataFrame) -> np.ndarray:
    """(n,) kind of the user of each row, which has `client` and `user` as in users.csv. Raises DataError if the mix has
    authors and users.csv does not say whether a user is one. (Without a table for them `author` changes nothing.)"""
    if not _authors_table(trial):
        return np.full(len(rows), USERS, dtype=object)
    lives = trial.users.set_index(["client", "user"])["author"]
    author = rows[["client", "user"]].join(lives, on=["client", "user"])["author"].to_numpy()
    if np.isnan(author).any():
        row = rows.iloc[int(np.isnan(author).argmax())]
        path = trial.folder / "clients" / row["client"] / "users.csv"
        raise DataError(f"{path}: does not say whether user {row['user']} is an author")
    return np.where(author == 1, AUTHORS, USERS).astype(object)


def _numbered(trial: RawTrial, interactions: pd.DataFrame) -> pd.DataFrame:
    """With `user` as in thinks.csv and users.csv: theirs counts through all clients, the JTL's from 0 in each."""
    first = interactions["client"].map({c: trial.first_user(c) for c in trial.clients}).astype(int)
    return interactions.assign(user=interactions["user"] + first)


def choices(trial: RawTrial) -> pd.DataFrame:
    """One row per choice that a user made during the run: `kind` of the user, `page` (where it stood), `chosen` (what
    it drew from its table) and `got` (what it requested then: another state if the page did not offer the choice; None
    at the end). Choices with a think too short to tell its page from the next one are left out: thinks do not depend on
    choices."""
    parts = []
    interactions = _numbered(trial, trial.interactions)
    made = trial.thinks[trial.thinks["end_s"] - trial.thinks["start_s"] > 2 * CLOCK_S]
    made = made.assign(kind=_kinds(trial, made), after=made["start_s"] + CLOCK_S, until=made["end_s"] - CLOCK_S)
    for client, thinks in made.groupby("client"):
        requests = interactions[interactions["client"] == client]
        chosen = thinks[["kind", "user", "state", "after", "until"]]
        pages = requests[["user", "interaction", "t_s"]].sort_values("t_s")
        joined = pd.merge_asof(chosen.sort_values("after"), pages, left_on="after", right_on="t_s", by="user").rename(
            columns={"state": "chosen", "interaction": "page"}
        )
        nexts = requests[["user", "interaction", "start_s"]].sort_values("start_s")
        joined = pd.merge_asof(
            joined.sort_values("until"), nexts, left_on="until", right_on="start_s", by="user", direction="forward"
        ).rename(columns={"interaction": "got"})
        parts.append(joined)
    start, end = trial.run
    whole = pd.concat(parts, ignore_index=True)
    within = whole["after"].between(start + CLOCK_S, end, inclusive="left") & whole["page"].notna()
    return whole.loc[within, ["kind", "page", "chosen", "got"]].reset_index(drop=True)


def turned_away(trial: RawTrial) -> dict[str, dict[tuple[str, str], float]]:
    """Kind of users -> (page, chosen state) -> share of the choices that the page did not offer, so that the user went
    back: a comment without answers has no comment to view (a "Sorry" page offers
    nothing)."""
    made = trial.remember(choices)
    made = made[~made["chosen"].isin(GO_ON) & made["got"].notna()]
    away = (made["got"] != made["chosen"]).groupby([made["kind"], made["page"], made["chosen"]]).mean()
    shares: dict[str, dict[tuple[str, str], float]] = {USERS: {}, AUTHORS: {}}
    for (kind, page, chosen), share in away[away > 0].items():
        shares[kind][page, chosen] = float(share)
    return shares


def begun(trial: RawTrial) -> tuple[pd.DataFrame, int]:
    """The requests that users began in the run and that were answered by its end or later, and the number of those
    that were not: each request follows a think. (What is answered in the run is another mix while a backlog grows:
    slow interactions stay in it.)"""
    start, end = trial.run
    requests = trial.interactions
    answered = requests[requests["start_s"].between(start, end, inclusive="left")]
    asked = int(trial.thinks["end_s"].between(start, end, inclusive="left").sum())
    return answered, max(0, asked - len(answered))


def expected_shares(trial: RawTrial) -> dict[str, float]:
    """Share of each interaction in a walk of the mix's table in which pages turn choices away and requests fail as
    often as in this trial. If authors walk their own, each kind of users counts with its share of the run's
    requests: how many authors were drawn is chance, not a fault. Raises DataError if the trial holds no table."""
    (run, _), mixes = trial.remember(begun), trial.remember(tables)
    away = trial.remember(turned_away)
    kinds = _kinds(trial, _numbered(trial, run))
    expected: Counter[str] = Counter()
    for kind, mix in mixes.items():
        own = run[kinds == kind]
        weight = len(own) / max(len(run), 1) if AUTHORS in mixes else 1.0
        if weight == 0:  # nobody of this kind was drawn
            continue
        failed = (~own["ok"]).groupby(own["interaction"]).mean()
        counts = walk(mix, away[kind], {str(k): float(v) for k, v in failed.items()})
        expected.update({name: weight * count / STEPS for name, count in counts.items()})
    return dict(expected)


def walk(mix: Table, away: dict[tuple[str, str], float], failed: dict[str, float]) -> Counter[str]:
    """Visits in `STEPS` requests as the users walk: Back by the history, which a state without Back empties (the end
    of a session does not); a state that the page does not offer leads back too, step by step; after an error home."""
    rows = tuple((state, tuple(targets), tuple(cumulative)) for state, (targets, cumulative) in mix.rows.items())
    some = (tuple((key, share) for key, share in shares.items() if share > 0) for shares in (away, failed))
    return Counter(_walked_once(mix.home, rows, *some))


@lru_cache(maxsize=4)
def _walked_once(home: str, rows: tuple, shares_away: tuple, shares_failed: tuple) -> Counter[str]:
    """Trials in which nothing fails or is turned away share one walk, which takes a tenth of a trial's checks."""
    mix = Table(home, {state: (list(targets), list(cumulative)) for state, targets, cumulative in rows})
    away, failed = dict(shares_away), dict(shares_failed)
    has_back = {s for s in mix.rows if mix.has_back(s)}
    incomplete = {page for page, _ in away}
    steps = {page: (failed.get(page, 0.0), *row, page in incomplete) for page, row in mix.rows.items()}
    rng = np.random.default_rng(1)
    visited: list[str] = []
    home, state, stack = mix.home, mix.home, []
    for draw, error in zip(rng.random(STEPS).tolist(), rng.random(STEPS).tolist(), strict=True):
        visited.append(state)
        page = state
        fails, targets, cumulative, offers_less = steps[page]
        if error < fails:
            state = home
            continue
        index = bisect_right(cumulative, draw)
        chosen = targets[index] if index < len(targets) else page
        if chosen == "EndOfSession":
            state = home
            continue
        if chosen == "Back":
            state = stack.pop() if stack else home
        else:
            if chosen in has_back:
                stack.append(page)
            else:
                stack = []
            state = chosen
        if not offers_less:
            continue
        missing: dict[str, bool] = {}
        while state != home and missing.setdefault(state, _missing(rng, away, page, state)):
            state = stack.pop() if stack else home
    return Counter(visited)


def _missing(rng: np.random.Generator, away: dict[tuple[str, str], float], page: str, state: str) -> bool:
    share = away.get((page, state), 0.0)
    return share > 0 and rng.random() < share


def ratio_error(counts: np.ndarray, requests: np.ndarray) -> np.ndarray:
    """Standard error of the shares sum(counts) / sum(requests), (users, names) and (users,), whose sampling unit is the
    user (ratio estimator; Cochran, Sampling Techniques, 1977, 6.5)."""
    rest = counts - counts.sum(axis=0) / requests.sum() * requests[:, None]
    return np.sqrt(len(counts) / (len(counts) - 1) * (rest**2).sum(axis=0)) / requests.sum()


def expected_error(counts: np.ndarray, requests: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Standard error of the shares if `wanted` (names,) are the true ones: never below `ratio_error`. A state in which
    users stay for several requests is rare by chance in a short run; its requests then vary little, too, and their own
    error makes chance look like a fault. Clusters stay as large while they get fewer, so that the variance grows with
    the share; a state that nobody reached has the clusters of the state that has the largest."""
    n, seen = requests.sum(), counts.sum(axis=0) / requests.sum()
    own, binomial = ratio_error(counts, requests), seen * (1 - seen) / n
    reached, some = seen > 0, (seen > 0) & (seen < 1)
    largest = (own[some] ** 2 / binomial[some]).max() if some.any() else 1.0
    grown = own * np.sqrt(np.maximum(1.0, wanted / np.where(reached, seen, 1.0)))
    return np.where(reached, grown, np.sqrt(largest * wanted * (1 - wanted) / n))


@check("M1", "Mix: largest deviation of an interaction's share", "mix", thinkers=True)
def shares(trial: RawTrial) -> Finding:
    """Of the requests that users began in the run. Fails beyond 2 points, beyond chance (of the users: one stays where
    it is for longer than a short run lasts, so that what it requests is not independent, and neither are blocks of
    time) and beyond what the requests without an answer, whose kind is not known, can explain."""
    if not _walked(trial):
        return not_applicable(NO_WALK)
    (run, unanswered), expected = trial.remember(begun), trial.remember(expected_shares)
    if len(run) < MIN_N:
        return undecidable(f"{len(run)} interactions, {MIN_N} are needed", n=len(run), required=False)
    looked_at = {name: share for name, share in expected.items() if share >= MIN_SHARE}
    by_user = pd.crosstab([run["client"], run["user"]], run["interaction"])
    requests = by_user.sum(axis=1).to_numpy()
    counts = by_user.reindex(columns=list(looked_at), fill_value=0).to_numpy()
    if len(counts) < MIN_USERS:
        return undecidable(f"{len(counts)} users, {MIN_USERS} are needed", n=len(run), required=False)
    answered, n = counts.sum(axis=0), requests.sum()
    least, most = answered / (n + unanswered), (answered + unanswered) / (n + unanswered)
    wanted = np.array(list(looked_at.values()))
    off = 100 * (np.clip(wanted, least, most) - wanted)  # as near to what is expected as the unanswered allow
    errors = 100 * expected_error(counts, requests, wanted)
    chance = stats.t.isf(FALSE_ALARM / 2 / len(looked_at), len(counts) - 1) * errors
    worst = int(np.abs(off).argmax()) if off.any() else int(np.abs(answered / n - wanted).argmax())
    name = list(looked_at)[worst]
    made = trial.remember(choices)
    away = (made["got"].notna() & ~made["chosen"].isin(GO_ON) & (made["got"] != made["chosen"])).mean()
    text = (
        f"{name}: {100 * answered[worst] / n:.1f} %, expected {100 * wanted[worst]:.1f} % with the "
        f"{100 * away:.1f} % of the choices that pages did not offer"
    )
    if unanswered:
        text += f"; {counted(unanswered, 'more request')} had no answer before the end"
    return _finding(off, chance, errors, len(run), text)


@check("M2", "Mix: states never visited though 20 visits were expected", "mix", required=False, thinkers=True)
def unvisited(trial: RawTrial) -> Finding:
    if not _walked(trial):
        return not_applicable(NO_WALK)
    run, expected = trial.run_interactions, trial.remember(expected_shares)
    seen = set(run["interaction"])
    missing = [s for s, share in expected.items() if share * len(run) >= UNVISITED_EXPECTED and s not in seen]
    unknown = sorted(seen.difference(*(mix.rows for mix in trial.remember(tables).values())))
    text = "; ".join(
        [f"never: {', '.join(missing)}"] * bool(missing) + [f"not in the mix: {', '.join(unknown)}"] * bool(unknown)
    )
    return exact(float(len(missing) + len(unknown)), 0.0, "states", text or "all visited", len(run))


@check("M3", "Choices: largest deviation of a transition from the mix's table", "mix", thinkers=True)
def transitions(trial: RawTrial) -> Finding:
    """Each kind of users against its own table. In points of all choices; fails beyond 2 points and chance (choices are
    independent draws: multinomial)."""
    if not _walked(trial):
        return not_applicable(NO_WALK)
    made, mixes = trial.remember(choices), trial.remember(tables)
    if len(made) < MIN_N:
        return undecidable(f"{len(made)} choices, {MIN_N} are needed", n=len(made), required=False)
    counts = Counter(zip(made["kind"], made["page"], made["chosen"], strict=True))
    pages = Counter(zip(made["kind"], made["page"], strict=True))

    def name(kind: str, page: str, to: str) -> str:
        return f"{kind}: " * (len(mixes) > 1) + f"{page} -> {to}"

    strange = [
        name(kind, page, to)
        for kind, page, to in counts
        if page not in mixes[kind].rows or not mixes[kind].probability(page, to)
    ]
    if strange:
        return Finding(Outcome.FAIL, None, POINTS, "points", len(made), None, f"not in the table: {strange[0]}")
    cells = [(kind, page, to) for kind, page in pages for to in dict.fromkeys([*mixes[kind].rows[page][0], page])]
    n = np.array([pages[kind, page] for kind, page, _ in cells])
    p = np.array([mixes[kind].probability(page, to) for kind, page, to in cells])
    off = 100 * (np.array([counts[cell] for cell in cells]) - n * p) / len(made)
    errors = 100 * np.sqrt(n * p * (1 - p)) / len(made)
    worst = int(np.abs(off).argmax())
    text = f"{name(*cells[worst])}: {counts[cells[worst]]} of {n[worst]}, expected {100 * p[worst]:.1f} %"
    chance = stats.norm.isf(FALSE_ALARM / 2 / len(cells)) * errors
    return _finding(off, chance, errors, len(made), text)


def _finding(off: np.ndarray, chance: np.ndarray, errors: np.ndarray, n: int, text: str) -> Finding:
    """`off`, `chance`, `errors`: points, one per share. A run too short to tell does not invalidate."""
    beyond, worst = np.abs(off) > POINTS, int(np.abs(off).argmax())
    outcome = Outcome.PASS if not beyond.any() else Outcome.UNDECIDABLE
    if (beyond & (np.abs(off) > chance)).any():
        outcome = Outcome.FAIL
    required = False if outcome is Outcome.UNDECIDABLE else None
    return Finding(outcome, float(off[worst]), POINTS, "points", n, float(errors[worst]), text, required)
