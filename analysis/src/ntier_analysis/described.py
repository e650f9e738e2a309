"""What the table `trials` says of the system under test: read here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd
from pydantic import ValidationError

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.contracts.layout import Layout
from ntier_analysis.contracts.nodes import said
from ntier_analysis.contracts.system import NOT_TIERS, Factor, LoadModel, System, Tier
from ntier_analysis.errors import DataError


def system_of(trials: pd.DataFrame) -> System:
    """The system of one sweep, from its manifests, else from its columns (imports), else the one that older stores
    meant. The factor's value is the first trial's. Raises DataError for a text that is none."""
    row = trials.iloc[0]
    text, value = _given(row, "system"), row.get("factor_value")
    value = float(value) if value is not None and pd.notna(value) else float(row["users"])
    if text:
        try:
            return _with_value(text, value)
        except (ValueError, KeyError, TypeError) as error:
            told = said(error) if isinstance(error, ValidationError) else str(error)
            raise DataError(f"table trials, column system of {row.get('sweep', 'the sweep')}: {told}") from None
    meant = implied.system(value)
    order, model, factor = (_given(row, name) for name in ("tiers", "load_model", "factor"))
    named = Factor(name=factor, title=factor, unit=_given(row, "factor_unit"), value=value) if factor else meant.factor
    if not order:
        return meant.model_copy(update={"load_model": LoadModel(model or LoadModel.CLOSED), "factor": named})
    tiers = [Tier(name=t, title=t) for t in order.split(",")]
    return System(name="imported", title="imported", tiers=tiers, load_model=model or LoadModel.CLOSED, factor=named)


def order_of(trials: pd.DataFrame) -> tuple[str, ...]:
    """Tiers from the users inwards; those that older stores meant, where the table does not say."""
    text = _given(trials.iloc[0], "tiers") if len(trials) else ""
    return tuple(text.split(",")) if text else implied.TIERS


def ordered(tiers: Iterable[str], order: tuple[str, ...]) -> list[str]:
    """The system's own among these, each once, in this order; those that it does not name come last."""
    own = {t for t in tiers if t not in NOT_TIERS}
    return [*(t for t in order if t in own), *sorted(own - set(order))]


def servers_of(trials: pd.DataFrame, nodes: pd.DataFrame) -> dict[str, int]:
    """How many nodes each tier of the system has, measured or not: by the topology, or by the table `nodes` if that
    lists more."""
    listed = nodes[~nodes["tier"].isin(NOT_TIERS)].groupby("tier")["node"].nunique().to_dict()
    topology = _given(trials.iloc[0], "topology") if len(trials) else ""
    named = dict(Layout.of(topology, ",".join(order_of(trials))).nodes)
    found = {tier: max(listed.get(tier, 0), named.get(tier, 0)) for tier in {**named, **listed}}
    return {tier: n for tier, n in found.items() if n}  # a tier may have none: 1/2/0/1


def objectives_of(trial: pd.Series) -> dict[str, float]:
    """Interaction -> its own response-time objective, ms. `trial`: a row of the table `trials`."""
    text = _given(trial, "system")
    return _with_value(text, 0.0).objectives if text else {}


def _with_value(text: str, value: float) -> System:
    """The store keeps the factor's value in a column of its own, so that the text is the same for all trials."""
    import orjson

    document = orjson.loads(text)
    document["factor"]["value"] = value
    return System.model_validate(document)


def _given(row: pd.Series, name: str) -> str:
    value = row.get(name)
    return str(value) if value is not None and pd.notna(value) else ""


def factor_of(trials: pd.DataFrame) -> tuple[str, str]:
    """Name and unit of what the sweep changes from trial to trial."""
    if trials.empty:
        return USERS, ""
    return _given(trials.iloc[0], "factor") or USERS, _given(trials.iloc[0], "factor_unit")


class LoadAxis(NamedTuple):
    """The loads of a sweep, as texts and figures call them: name and unit of what it changes. `order`: its tiers from
    the users inwards. `who`: what users are called."""

    factor: str = USERS
    unit: str = ""
    order: tuple[str, ...] = ()
    who: str = USERS

    @property
    def name(self) -> str:
        """`users`, `workers`, or `sleep_s [s]`."""
        if self.factor == USERS:
            return self.who
        return f"{self.factor} [{self.unit}]" if self.unit else self.factor

    def at(self, load: str) -> str:
        """`3,000 users`, `8 workers`, or `sleep_s 0.5 s`."""
        return f"{load} {self.who}" if self.factor == USERS else f"{self.factor} {load} {self.unit}".rstrip()


OVER_USERS = LoadAxis()


def axis_of(trials: pd.DataFrame) -> LoadAxis:
    """Of one sweep. Raises DataError for a column `system` that holds none."""
    return LoadAxis(*factor_of(trials), order_of(trials), system_of(trials).load_model.who)


def values(trials: pd.DataFrame) -> pd.Series:
    """The factor's value of each trial (users, where no other is named)."""
    users = trials["users"].astype(float)
    if "factor_value" not in trials or factor_of(trials)[0] == USERS:
        return users
    return pd.to_numeric(trials["factor_value"], errors="coerce").astype(float).fillna(users)


def loads(trials: pd.DataFrame) -> pd.Series:
    """The loads of a sweep: whole users, or values of the factor."""
    return trials["users"] if factor_of(trials)[0] == USERS else values(trials)


def repetitions(trials: pd.DataFrame) -> pd.Series:
    """Which repetition of its load each trial of a sweep is: the column `rep`; where that numbers two of a load alike,
    as imports may, the order of their runs. Index as of `trials`, each label once."""
    columns = {"load": values(trials), "rep": trials["rep"], "start_s": trials["run_start_s"].astype(float)}
    runs = pd.DataFrame(columns).sort_values("start_s", kind="stable")
    alike = runs.duplicated(["load", "rep"], keep=False).groupby(runs["load"]).transform("any")
    return trials["rep"].where(~alike, runs.groupby("load").cumcount() + 1)


def by_load(trials: pd.DataFrame) -> pd.DataFrame:
    """In order of the factor's value, then of the trials' names."""
    if factor_of(trials)[0] == USERS:
        return trials.sort_values(["users", "trial"])
    return trials.assign(_value=values(trials)).sort_values(["_value", "trial"]).drop(columns="_value")
