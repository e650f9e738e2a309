"""Whether the values of a table are what its columns allow: asked at import, at writing and at reading."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ntier_analysis.errors import DataError
from ntier_analysis.store.schema import RULES, Rule

if TYPE_CHECKING:
    import pandas as pd
    import pandera.pandas as pandera

OF_VALID = ("run_start_s", "run_end_s", "throughput_per_s")
"""Columns that a valid trial must have."""

KEY: dict[str, list[str]] = {
    "trials": ["sweep", "trial"],
    "samples": ["sweep", "trial", "node", "source", "resource", "item", "metric", "t_s"],
    "nodes": ["sweep", "trial", "node"],
    "from_above": ["sweep", "trial"],
}
"""Columns that no two rows of a table may have in common."""

IN_ORDER: dict[str, list[tuple[str, str]]] = {
    "trials": [
        ("goodput_per_s", "throughput_per_s"),
        ("throughput_low_per_s", "throughput_per_s"),
        ("throughput_per_s", "throughput_high_per_s"),
        ("response_time_p50_ms", "response_time_p95_ms"),
        ("response_time_p95_ms", "response_time_p99_ms"),
    ]
}
"""(a, b): a is at most b, by their definitions (give or take the rounding of a file)."""
ROUNDING = 1e-3
LONGEST_S = 1e6
"""Eleven days; what is judged is laid on a grid of the samples' interval."""

JUDGED = ("utilization_pct", "throttled_pct", "waiting", "used_cores")
"""Metrics that verdicts rest on: never negative."""

Place = Callable[[int], str]
"""Number of a row, from 0 -> where it is, for a message."""


def _rules(table: str, *, stored: bool) -> dict[str, Rule]:
    return {name: rule for name, rule in RULES[table].items() if not (stored and rule.new)}


@cache
def frame_schema(table: str, *, stored: bool = False) -> pandera.DataFrameSchema:
    """The table's rules for pandera. A column that is not there is not checked. `stored`: without the new ones."""
    import pandera.pandas as pandera

    columns = {
        name: pandera.Column(checks=rule.check(), nullable=not rule.filled, required=False)
        for name, rule in _rules(table, stored=stored).items()
    }
    return pandera.DataFrameSchema(columns)


def validated(
    table: str, frame: pd.DataFrame, place: Place, *, unique: bool = False, stored: bool = False
) -> pd.DataFrame:
    """The frame, if its values are what the schema allows. Raises DataError naming place, column, value and what is
    allowed. `unique`: also that no key occurs twice. `stored`: as it is read."""
    frame = frame.reset_index(drop=True)
    if not _surely_allowed(table, frame, stored=stored):
        _check_values(table, frame, place, stored=stored)
    if table == "trials" and {"run_start_s", "run_end_s"} <= set(frame.columns):
        _refuse(frame, frame["run_end_s"] <= frame["run_start_s"], "run_end_s", "more than run_start_s", place)
        seconds = frame["run_end_s"] - frame["run_start_s"]
        _refuse(frame, seconds > LONGEST_S, "run_end_s", f"at most {LONGEST_S:g} s after run_start_s", place)
    if table == "trials" and "valid" in frame:
        valid = frame["valid"].fillna(False).astype(bool)
        for column in OF_VALID:
            if column in frame:
                _refuse(frame, valid & frame[column].isna(), column, "a number, since the trial is valid", place)
    for less, more in [] if stored else IN_ORDER.get(table, []):
        if {less, more} <= set(frame.columns):
            low, high = frame[less].astype(float), frame[more].astype(float)
            _refuse(frame, low > high * (1 + ROUNDING), less, f"at most {more}", place)
    if table == "samples" and {"metric", "value"} <= set(frame.columns):
        negative = frame["value"] < 0
        if negative.any():  # happens seldom; comparing numbers is quicker than comparing names
            _refuse(frame, negative & frame["metric"].isin(JUDGED), "value", "a number >= 0", place)
    if unique and table in KEY:
        keys = [c for c in KEY[table] if c in frame.columns]
        twice = frame.duplicated(keys)
        if twice.any():
            row = int(twice.to_numpy().argmax())
            raise DataError(f"{place(row)}: {' '.join(str(v) for v in frame[keys].iloc[row])} is repeated")
    return frame


def _surely_allowed(table: str, frame: pd.DataFrame, *, stored: bool) -> bool:
    rules = {name: rule for name, rule in _rules(table, stored=stored).items() if name in frame.columns}
    return frame.columns.is_unique and all(surely_holds(rule, frame[name]) for name, rule in rules.items())


def surely_holds(rule: Rule, column: pd.Series) -> bool:
    """Whether all values are what the rule allows, by a look that is much quicker than pandera; False also where it
    cannot tell: of another type than a name or a number."""
    import numpy as np
    import pandas as pd

    kind, missing = column.dtype, column.isna()
    if rule.filled and missing.any():
        return False
    if missing.all():
        return True
    if rule.values or rule.pattern:
        texts = isinstance(kind, (pd.CategoricalDtype, pd.StringDtype))
        if not texts and pd.api.types.infer_dtype(column) != "string":  # of objects
            return False
        names = column.dropna().unique()
        return all(n in rule.values if rule.values else re.match(rule.pattern, str(n)) for n in names)
    plain = kind if isinstance(kind, np.dtype) else getattr(kind, "numpy_dtype", None)  # of Int64 and its like
    if plain is None or plain.kind not in "iuf":
        return False
    numbers, (low_in, high_in) = column[~missing].to_numpy(dtype=plain), rule.ends_in
    below = numbers < rule.low if low_in else numbers <= rule.low
    above = numbers > rule.high if high_in else numbers >= rule.high
    return not (below | above).any()


def _check_values(table: str, frame: pd.DataFrame, place: Place, *, stored: bool) -> None:
    """By pandera, which knows the value that is wrong; it takes as long to import as half a dozen sweeps to check."""
    from pandera.errors import SchemaError

    try:
        frame_schema(table, stored=stored).validate(frame)
    except SchemaError as error:
        row, name = int(error.failure_cases["index"].min()), error.schema.name
        said = _said(name, frame[name].iloc[row])
        raise DataError(f"{place(row)}: {said}, expected {RULES[table][name].text}") from None


def _refuse(frame: pd.DataFrame, wrong: pd.Series, column: str, expected: str, place: Place) -> None:
    wrong = wrong.fillna(False).to_numpy(dtype=bool)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{place(row)}: {_said(column, frame[column].iloc[row])}, expected {expected}")


def _said(column: str, value: Any) -> str:
    import pandas as pd

    empty = pd.isna(value) or value == ""
    return f"{column} is " + ("empty" if empty else repr(value.item() if hasattr(value, "item") else value))
