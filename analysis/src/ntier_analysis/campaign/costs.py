"""What topologies cost per hour, and the cheapest that carries a load within an objective."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import pandas as pd

from ntier_analysis.campaign.cells import Campaign, Cell
from ntier_analysis.contracts.files import read_json
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.errors import DataError
from ntier_analysis.setting import MUST_EQUAL, as_text, by_make
from ntier_analysis.statistics.throughput import at_load
from ntier_analysis.statistics.values import Interval, estimated, reach_of


@dataclass(frozen=True)
class Prices:
    """Price per hour of each node type."""

    per_hour: Mapping[str, float]
    currency: str
    source: str

    def of(self, cell: Cell) -> float:
        """Price per hour of all the cell's nodes. Raises DataError for a node type without a price."""
        missing = [t for t in cell.nodes if t not in self.per_hour]
        if missing:
            raise DataError(f"prices: none for node type {missing[0]!r}; there are: {', '.join(self.per_hour)}")
        return sum(n * self.per_hour[t] for t, n in cell.nodes.items())


def read_prices(path: Path | None = None) -> Prices:
    """JSON: {"currency": "EUR", "source": "...", "per_hour": {"normal": 0.1, "low_cost": 0.03}}, or a file of what is
    rented (terraform/targets/*/machines.json); without a path the example prices. Raises DataError naming what is
    wrong."""
    name = str(path or "prices.json")
    try:
        example = files("ntier_analysis.campaign") / "prices.json"
        document = read_json(path) if path else json.loads(example.read_text(encoding="utf-8"))
        offered = {k: t["price_per_hour"] for k, t in document.get("node_types", {}).items()}
        prices = {str(k): float(v) for k, v in (offered or document["per_hour"]).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error).removeprefix(f"{name}: ") if isinstance(error, DataError) else repr(error)[:200]
        raise DataError(
            f'{name}: expected JSON {{"currency", "source", "per_hour": {{type: number}}}} ({why})'
        ) from None
    bad = [k for k, v in prices.items() if not (v >= 0 and math.isfinite(v))]
    if bad:
        raise DataError(f"{name}: price of {bad[0]!r} is {prices[bad[0]]}, allowed is a number >= 0")
    source = ", ".join(str(document[k]) for k in ("source", "date", "note") if document.get(k)) if offered else None
    return Prices(prices, str(document.get("currency", "")), source or str(document.get("source", name)))


ALIKE = ("system", "data_profile", "think_time_s", "load_model", "factor")
"""Columns of the setting in which cells must agree for their interactions to be the same work. In the others (policies,
settings, places) they may differ: they are what is chosen from."""


@dataclass(frozen=True)
class Carried:
    """Nominal throughput of a load, 1/s, with its 95 % interval (`n`: its trials), and the load's users (or the
    factor's value). `between`: the same by what trials of one load differ by at all loads of the topology, so that it
    has more degrees of freedom than the two or three trials of one load; None of one trial. `in_time`: whether the
    objective is known to be kept (or there is none); else the 95th percentile of a trial is not known."""

    rate: Interval
    users: float
    between: Interval | None = None
    in_time: bool = True


def objective(cell: Cell, slo_ms: float | None) -> float:
    """Of the 95th percentile, ms: the one asked for, else the mix's own; NaN: none is known."""
    return cell.slo_ms if slo_ms is None else slo_ms


def _kept(cell: Cell, slo_ms: float | None) -> list[Carried]:
    """Of each load that is not known to miss the objective: the 95th percentile of none of its valid trials is longer,
    and a load without one lies below those that miss it. Where no objective is known, of any load."""
    loads = []
    limit, (spread, freedom) = objective(cell, slo_ms), _spread(cell.loads)
    missed = _missed_from(cell.loads, limit)
    for users, rows in cell.loads.groupby("users"):
        unknown = rows["p95_ms"].isna().any()  # sums only, or too few to tell
        if (rows["p95_ms"] > limit).any() or (unknown and users >= missed):
            continue
        rate = at_load(*(rows[c].to_numpy(float) for c in ("throughput_per_s", "low_per_s", "high_per_s")))
        between = None
        if rate.n > 1:
            sd = max(spread * rate.value, float(rows["throughput_per_s"].std()))
            between = estimated(rate.value, sd / math.sqrt(rate.n), freedom, rate.n)
        loads.append(Carried(rate, users, between, not (math.isfinite(limit) and unknown)))
    return loads


def _missed_from(loads: pd.DataFrame, limit: float) -> float:
    """The fewest users from which on the objective is missed: more users never wait less. One that is missed below a
    load that keeps it was not missed for its users (the system was cold, say). Infinite: nowhere."""
    p95 = loads.groupby("users")["p95_ms"]
    longest, known = p95.max(), p95.count() == p95.size()
    kept = longest.index[known & (longest <= limit)].max()  # NaN: none
    missed = longest.index[longest > limit]
    return min((users for users in missed if not users < kept), default=math.inf)


def _spread(loads: pd.DataFrame) -> tuple[float, int]:
    """What trials of one load differ by, as a share of their mean (one standard deviation), from all loads together,
    with its degrees of freedom. NaN and 0 without repetitions."""
    means = loads.groupby("users")["throughput_per_s"].transform("mean")
    freedom = len(loads) - loads["users"].nunique()
    off = loads["throughput_per_s"] / means - 1
    return (math.sqrt(float((off**2).sum()) / freedom) if freedom else math.nan), freedom


def within(cell: Cell, slo_ms: float | None) -> Carried | None:
    """The highest throughput measured within the objective; None if no load keeps it. Where none is known: of all."""
    in_time = (carried for carried in _kept(cell, slo_ms) if carried.in_time)
    return max(in_time, key=lambda carried: carried.rate.value, default=None)


ANSWERS = ("no", "maybe", "yes")
NEAR = 1.5
"""A load without an interval may serve so many times what was measured: single trials of a load differ by 12 % (s.d.,
docs/analysis.md, Throughput without the machine's speed), and four times this covers tails longer than the normal."""
NOTHING = (None, 0, math.nan, math.nan, math.nan, True)
"""Shown of a topology of which no load counts."""


def cheapest(cells: list[Cell], prices: Prices, throughput_per_s: float, slo_ms: float | None) -> pd.DataFrame:
    """All cells by price. Columns sweep, topology, price_per_hour, users, trials, throughput_per_s, low_per_s,
    high_per_s, in_time (as in `Carried`), answer: yes (the interval lies above the wanted throughput), maybe (it holds
    it, or it is not known and the value is less than NEAR times too low, or in_time is False), no. Nothing is
    interpolated: only measured loads count. Each load that may keep the objective is asked, since the one with the
    highest mean may be the least sure, but none without an interval if one with an interval serves as much; the row
    shows the one with the best answer, of several the one with the highest throughput. The intervals hold for all loads
    together of the cells that cost no more: of eight of which none carries so much, one seems to in 18 of 100. A load
    of one trial is `maybe` at most: its interval is of the trial's parts."""
    known = [(prices.of(c), c, _kept(c, slo_ms)) for c in cells]
    rows = []
    for price, c, kept in known:
        several = sum(len(others) for other, _, others in known if other <= price)
        asked = [(_answer(k, throughput_per_s), k) for k in _telling([together(k, several) for k in kept])]
        said, best = max(asked, key=lambda a: (ANSWERS.index(a[0]), a[1].rate.value), default=("no", None))
        rows.append((c.sweep, str(c.topology), price, *(_shown(best) if best else NOTHING), said))
    shown = ["users", "trials", "throughput_per_s", "low_per_s", "high_per_s", "in_time"]
    columns = ["sweep", "topology", "price_per_hour", *shown, "answer"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        ["price_per_hour", "throughput_per_s"], ascending=[True, False], ignore_index=True
    )


def _shown(carried: Carried) -> tuple:
    rate = carried.rate
    return carried.users, rate.n, rate.value, rate.low, rate.high, carried.in_time


def together(carried: Carried, loads: int) -> Carried:
    """With the interval that holds for so many loads at once (Bonferroni). What trials differ by is `between`'s; the
    interval is never narrower than by the trials' own errors, of which the rate's is if it has more freedom than they
    are many."""
    rate, between = carried.rate, carried.between
    known = [between] if between else []
    known += [rate] if between is None or rate.freedom >= rate.n else []
    return replace(carried, rate=max((_widened(r, loads) for r in known), key=lambda r: r.half_width))


def _widened(rate: Interval, loads: int) -> Interval:
    wider = reach_of(loads, rate.freedom)
    low, high = rate.value - wider * (rate.value - rate.low), rate.value + wider * (rate.high - rate.value)
    return replace(rate, low=low, high=high)


def _telling(loads: list[Carried]) -> list[Carried]:
    """Without those that have no interval where one that has serves as much."""
    most = max((k.rate.value for k in loads if not math.isnan(k.rate.high)), default=-math.inf)
    return [k for k in loads if not math.isnan(k.rate.high) or k.rate.value > most]


def _answer(carried: Carried, wanted: float) -> str:
    """Without an interval (NaN) nobody knows near `wanted`, on whichever side of it the value lies."""
    rate = carried.rate
    if (NEAR * rate.value if math.isnan(rate.high) else rate.high) < wanted:
        return "no"
    return "yes" if rate.low >= wanted and rate.n > 1 and carried.in_time else "maybe"


def priced(cells: list[Cell], prices: Prices) -> pd.DataFrame:
    """Columns sweep, topology, map, price_per_hour, max_per_s, low_per_s, high_per_s, at_least, price_per_million
    (interactions at the maximum)."""
    rows = [
        (c.sweep, str(c.topology), c.map_key.label, prices.of(c), c.max_per_s, c.low_per_s, c.high_per_s, c.at_least)
        for c in cells
    ]
    columns = ["sweep", "topology", "map", "price_per_hour", "max_per_s", "low_per_s", "high_per_s", "at_least"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(price_per_million=1e6 * frame["price_per_hour"] / (3600 * frame["max_per_s"]))


def comparable(cells: list[Cell]) -> None:
    """Raises DataError if the cells have different mixes, systems, data, ...: an interaction of one is not that of
    another. Also if one is over another factor than users, whose values are no loads to be carried."""
    for c in cells:
        factor = as_text(dict(c.map_key.setting).get("factor", ()) or (USERS,))
        if factor != USERS:
            raise DataError(f"sweep {c.sweep} is over {factor}, not over users: name sweeps over users to choose from")
    mixes = sorted({c.map_key.mix for c in cells})
    if len(mixes) > 1:
        raise DataError(
            f"the sweeps have different mixes ({', '.join(mixes)}), which cost differently: choose one with --mix"
        )
    for column in ALIKE:
        seen = sorted({as_text(dict(c.map_key.setting).get(column, ())) for c in cells})
        if len(seen) > 1:
            raise DataError(
                f"the sweeps differ in {column} ({', '.join(seen)}): {MUST_EQUAL[column]}; name those to choose from"
            )


def kinds(cells: list[Cell]) -> list[list[Cell]]:
    """The cells in groups that `comparable` lets pass, in the order of their mixes."""
    groups: dict[tuple, list[Cell]] = {}
    for c in sorted(cells, key=lambda c: c.map_key.mix):
        own = dict(c.map_key.setting)
        groups.setdefault((c.map_key.mix, *(own.get(column, ()) for column in ALIKE)), []).append(c)
    return list(groups.values())


@dataclass(frozen=True)
class Answer:
    """`best`: the cheapest row whose interval lies above the wanted throughput; None if there is none. `unchecked`:
    sweeps of which no response-time objective is known."""

    wanted_per_s: float
    slo_ms: float | None
    prices: Prices
    rows: pd.DataFrame
    warnings: list[str]
    unchecked: tuple[str, ...] = ()

    @property
    def best(self) -> dict | None:
        sure = self.rows[self.rows["answer"] == "yes"]
        return None if sure.empty else sure.iloc[0].to_dict()

    def json(self) -> str:
        rows = json.loads(self.rows.to_json(orient="records"))
        sure = [r for r in rows if r["answer"] == "yes"]
        document = {
            "throughput_per_s": self.wanted_per_s,
            "slo_ms": self.slo_ms,
            "response_times_checked": not self.unchecked,
            "currency": self.prices.currency,
            "prices": dict(self.prices.per_hour),
            "prices_source": self.prices.source,
            "best": sure[0] if sure else None,
            "topologies": rows,
            "warnings": self.warnings,
        }
        return json.dumps(document, indent=1)

    def text(self) -> str:
        within_slo = " within the mix's objective" if self.slo_ms is None else f" within p95 <= {self.slo_ms:g} ms"
        wanted = f"{self.wanted_per_s:g} interactions/s (nominal){'' if self.unchecked else within_slo}"
        best, names = self.best, called(self.rows)
        if best is None:
            first = f"no measured topology is sure to carry {wanted}"
        else:
            name = names[self.rows["sweep"] == best["sweep"]].iloc[0]
            first = (
                f"{name} is the cheapest measured topology for {wanted}: {best['price_per_hour']:.2f} "
                f"{self.prices.currency} per hour, {best['throughput_per_s']:.0f} [{best['low_per_s']:.0f}, "
                f"{best['high_per_s']:.0f}]/s at {best['users']:,.0f} users"
            )
        told = self.rows.drop(columns=["sweep", "in_time"]).assign(topology=names)
        shown = told.to_string(index=False, float_format="{:.4g}".format, na_rep="-")
        notes = [*self.warnings, f"prices: {self.prices.source}", "only measured loads count; nothing is interpolated"]
        return "\n".join([first, shown, *(f"note: {n}" for n in notes)])


def called(rows: pd.DataFrame) -> pd.Series:
    """What to call each row: its topology, or its sweep where several have this topology."""
    return rows["topology"].where(~rows["topology"].duplicated(keep=False), rows["sweep"])


def answer(campaign: Campaign, prices: Prices, throughput_per_s: float, slo_ms: float | None) -> Answer:
    """Raises DataError for throughputs or objectives that are not positive, and for cells of several mixes."""
    for name, value in (("throughput", throughput_per_s), ("slo-ms", slo_ms)):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise DataError(f"--{name} is {value}, allowed is a number above 0")
    comparable(campaign.cells)
    warnings = list(campaign.warnings)
    if any(c.scale < 1 for c in campaign.cells):
        warnings.append(
            "at a scale below 1 response times below saturation are longer than at 1, so at scale 1 the objective is "
            "kept at these loads too"
        )
    unchecked = tuple(c.sweep for c in campaign.cells if math.isnan(objective(c, slo_ms)))
    if unchecked:
        warnings.insert(
            0,
            f"no response-time objective is known of {', '.join(unchecked)}: response times were not looked at there "
            "(give --slo-ms)",
        )
    rows = cheapest(campaign.cells, prices, throughput_per_s, slo_ms)
    names = called(rows)
    once = rows[(rows["trials"] == 1) & (rows["low_per_s"] >= throughput_per_s)]
    if len(once):
        again = by_make("repeat with REPS=3", all(c.imported for c in campaign.cells if c.sweep in set(once["sweep"])))
        warnings.append(
            f"only one trial at the load shown of {', '.join(names[once.index])}: its interval lacks what "
            f"trials differ by, so the answer is maybe{again}"
        )
    perhaps = rows[rows["answer"] == "maybe"]
    unknown = {
        "no 95th percentile of response times": perhaps[~perhaps["in_time"].astype(bool)],
        "no interval of the throughput": perhaps[perhaps["low_per_s"].isna()],
    }
    warnings += [
        f"{what} is known at the load shown of {', '.join(names[some.index])}, so the answer is maybe"
        for what, some in unknown.items()
        if len(some)
    ]
    return Answer(throughput_per_s, slo_ms, prices, rows, warnings, unchecked)
