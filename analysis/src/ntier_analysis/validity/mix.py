"""M: do the users choose as the mix's table says, and is the mix that comes of it the expected one?"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ntier_analysis.contracts import Outcome
from ntier_analysis.parsers.csvfile import read_csv
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import Finding, check, exact, undecidable

POINTS = 2.0
MIN_SHARE = 0.01
MIN_N = 500
UNVISITED_EXPECTED = 20
STEPS = 200_000
"""Requests of the walk: shares are known to 0.2 points then, a tenth of the limit."""
BLOCKS = 20
FALSE_ALARM = 2 * stats.norm.sf(3)
"""Of a whole check: that of three standard errors, however many shares the check looks at."""
CLOCK_S = 0.005
"""A think's start and its request's end are read from two clocks of the JVM that differ by milliseconds."""

GO_ON = {"Back", "EndOfSession"}


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


def table(trial: RawTrial) -> Table:
    """`config/<mix>.csv`: from,to,probability. Raises DataError if the trial holds no table of its mix."""
    path = trial.required(f"config/{trial.manifest.mix}.csv")
    read = read_csv(path, {"from": "text", "to": "text", "probability": "number"})
    rows = {
        str(state): (list(part["to"]), list(part["probability"].cumsum()))
        for state, part in read.groupby("from", sort=False)
    }
    return Table(str(read["from"].iloc[0]), rows)


def choices(trial: RawTrial) -> pd.DataFrame:
    """One row per choice that a user made during the run: `page` (where it stood), `chosen` (what it drew from the
    table) and `got` (what it requested then: another state if the page did not offer the choice; None at the end).
    Choices with a think too short to tell its page from the next one are left out: thinks do not depend on choices."""
    parts = []
    long_enough = trial.thinks["end_s"] - trial.thinks["start_s"] > 2 * CLOCK_S
    for client, thinks in trial.thinks[long_enough].groupby("client"):
        requests = trial.interactions[trial.interactions["client"] == client]
        requests = requests.assign(user=requests["user"] + trial.first_user(str(client)))
        chosen = thinks[["user", "state"]].assign(after=thinks["start_s"] + CLOCK_S, until=thinks["end_s"] - CLOCK_S)
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
    return whole.loc[within, ["page", "chosen", "got"]].reset_index(drop=True)


def turned_away(trial: RawTrial) -> dict[tuple[str, str], float]:
    """(page, chosen state) -> share of the choices that the page did not offer, so that the user went back: a comment
    without answers has no comment to view (RUBBoS's client; a "Sorry" page offers nothing)."""
    made = trial.remember(choices)
    made = made[~made["chosen"].isin(GO_ON) & made["got"].notna()]
    away = (made["got"] != made["chosen"]).groupby([made["page"], made["chosen"]]).mean()
    return {key: float(share) for key, share in away.items() if share > 0}


def expected_shares(trial: RawTrial) -> dict[str, float]:
    """Share of each interaction in a walk of the mix's table in which pages turn choices away and requests fail as
    often as in this trial. Raises DataError if the trial holds no table of its mix."""
    run = trial.run_interactions
    failed = (~run["ok"]).groupby(run["interaction"]).mean()
    counts = walk(trial.remember(table), trial.remember(turned_away), {str(k): float(v) for k, v in failed.items()})
    return {name: count / STEPS for name, count in counts.items()}


def walk(mix: Table, away: dict[tuple[str, str], float], failed: dict[str, float]) -> Counter[str]:
    """Visits in `STEPS` requests as RUBBoS walks: Back by the history, which a state without Back empties (the end of a
    session does not); a state that the page does not offer leads back too, step by step; after an error home."""
    has_back = {s for s, (targets, _) in mix.rows.items() if "Back" in targets}
    rng = np.random.default_rng(1)
    counts: Counter[str] = Counter()
    state, stack = mix.home, []
    for draw, error in zip(rng.random(STEPS).tolist(), rng.random(STEPS).tolist(), strict=True):
        counts[state] += 1
        page = state
        if error < failed.get(page, 0.0):
            state = mix.home
            continue
        targets, cumulative = mix.rows[page]
        index = bisect_right(cumulative, draw)
        chosen = targets[index] if index < len(targets) else page
        if chosen == "EndOfSession":
            state = mix.home
            continue
        if chosen == "Back":
            state = stack.pop() if stack else mix.home
        else:
            stack = [*stack, page] if chosen in has_back else []
            state = chosen
        missing: dict[str, bool] = {}
        while state != mix.home and missing.setdefault(state, _missing(rng, away, page, state)):
            state = stack.pop() if stack else mix.home
    return counts


def _missing(rng: np.random.Generator, away: dict[tuple[str, str], float], page: str, state: str) -> bool:
    share = away.get((page, state), 0.0)
    return share > 0 and rng.random() < share


@check("M1", "Mix: largest deviation of an interaction's share", "mix")
def shares(trial: RawTrial) -> Finding:
    """Fails beyond 2 points and chance (from 20 blocks of time: a user's states are not independent)."""
    run, expected = trial.run_interactions, trial.remember(expected_shares)
    if len(run) < MIN_N:
        return undecidable(f"{len(run)} interactions, {MIN_N} are needed", n=len(run), required=False)
    looked_at = {name: share for name, share in expected.items() if share >= MIN_SHARE}
    blocks = np.array_split(run["interaction"].to_numpy(), BLOCKS)
    seen = np.array([[(block == name).mean() for name in looked_at] for block in blocks])
    off = 100 * (seen.mean(axis=0) - np.array(list(looked_at.values())))
    errors = 100 * seen.std(axis=0, ddof=1) / np.sqrt(BLOCKS)
    chance = stats.t.isf(FALSE_ALARM / 2 / len(looked_at), BLOCKS - 1) * errors
    worst = int(np.abs(off).argmax())
    name = list(looked_at)[worst]
    made = trial.remember(choices)
    away = (made["got"].notna() & ~made["chosen"].isin(GO_ON) & (made["got"] != made["chosen"])).mean()
    text = (
        f"{name}: {100 * seen.mean(axis=0)[worst]:.1f} %, expected {100 * looked_at[name]:.1f} % with the "
        f"{100 * away:.1f} % of the choices that pages did not offer"
    )
    return _finding(off, chance, errors, len(run), text)


@check("M2", "Mix: states never visited though 20 visits were expected", "mix", required=False)
def unvisited(trial: RawTrial) -> Finding:
    run, expected = trial.run_interactions, trial.remember(expected_shares)
    seen = set(run["interaction"])
    missing = [s for s, share in expected.items() if share * len(run) >= UNVISITED_EXPECTED and s not in seen]
    unknown = sorted(seen - set(trial.remember(table).rows))
    text = "; ".join(
        [f"never: {', '.join(missing)}"] * bool(missing) + [f"not in the mix: {', '.join(unknown)}"] * bool(unknown)
    )
    return exact(float(len(missing) + len(unknown)), 0.0, "states", text or "all visited", len(run))


@check("M3", "Choices: largest deviation of a transition from the mix's table", "mix")
def transitions(trial: RawTrial) -> Finding:
    """In points of all choices; fails beyond 2 points and chance (choices are independent draws: multinomial)."""
    made, mix = trial.remember(choices), trial.remember(table)
    if len(made) < MIN_N:
        return undecidable(f"{len(made)} choices, {MIN_N} are needed", n=len(made), required=False)
    counts, pages = Counter(zip(made["page"], made["chosen"], strict=True)), Counter(made["page"])
    strange = [f"{page} -> {to}" for page, to in counts if page not in mix.rows or not mix.probability(page, to)]
    if strange:
        return Finding(Outcome.FAIL, None, POINTS, "points", len(made), None, f"not in the table: {strange[0]}")
    cells = [(page, to) for page in pages for to in dict.fromkeys([*mix.rows[page][0], page])]
    n, p = np.array([pages[page] for page, _ in cells]), np.array([mix.probability(*cell) for cell in cells])
    off = 100 * (np.array([counts[cell] for cell in cells]) - n * p) / len(made)
    errors = 100 * np.sqrt(n * p * (1 - p)) / len(made)
    worst = int(np.abs(off).argmax())
    page, to = cells[worst]
    text = f"{page} -> {to}: {counts[cells[worst]]} of {n[worst]}, expected {100 * p[worst]:.1f} %"
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
