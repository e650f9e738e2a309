"""The quick look at the values of a table passes nothing that pandera refuses."""

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.store.schema import RULES
from ntier_analysis.store.tables import read_table, sweeps
from ntier_analysis.store.validation import surely_holds, validated
from pandera.errors import SchemaError

RULES_THAT_DIFFER = sorted({rule for rules in RULES.values() for rule in rules.values()}, key=repr)
SWEEPS = ["1-1-1-1M.browse_only.shardingsphere"]
"""Of the raw results."""
EDGES = (-np.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, 1.0 + 2**-52, 2.0, 1e11, 1.00001e11, np.inf)
NAMES = (
    "cpu",
    "run",
    "pass",
    "planned",
    "closed",
    "db1",
    "",
    " ",
    "a b",
    ".",
    "x" * 200,
    "x" * 201,
    "run\n",
    "ä",
    "CPU",
)
OTHERS = ([True, False], [b"cpu"], [["cpu"]], [1, "cpu"], [0.5, "1"], [None, None], [pd.Timestamp(0)], [1 + 2j])


def columns():
    """Columns of every type, each with one or two values, or with a missing one."""
    for values in (*EDGES, *itertools.pairwise(EDGES), ()):
        yield pd.Series(np.atleast_1d(values), dtype="float64")
    for value in EDGES:
        yield pd.Series([value, np.nan])
    yield from (pd.Series([0.5, value]).astype("float32") for value in (-1.0, 2.0, np.inf))
    yield from (pd.Series([1, value], dtype="int64") for value in (-1, 0, 1, 2, 10**12))
    yield from (pd.Series([value], dtype=kind) for kind in ("uint8", "Int64", "Float64") for value in (0, 2))
    yield from (pd.Series([value, None], dtype="Int64") for value in (-1, 0, 1, 2, None, 2**62))
    for kind, value in itertools.product(("str", "category"), NAMES):
        yield pd.Series([value, "run"], dtype=kind)
        yield pd.Series([value], dtype=kind)
    yield from (pd.Series(["run", None], dtype=kind) for kind in ("str", "category", "string", "object"))
    yield from (pd.Series(["", "run"], dtype=kind) for kind in ("string", "object"))
    yield from (pd.Series(values) for values in OTHERS)


COLUMNS = list(columns())


def passes(schema, column) -> bool:
    try:
        schema.validate(pd.DataFrame({"x": column}))
    except (SchemaError, TypeError):
        return False
    return True


@pytest.mark.parametrize("rule", RULES_THAT_DIFFER, ids=lambda rule: rule.text)
def test_it_agrees_with_pandera(rule):
    schema = pandera.DataFrameSchema({"x": pandera.Column(checks=rule.check(), nullable=not rule.filled)})
    told = [(surely_holds(rule, column), column) for column in COLUMNS]
    wrong = [column.tolist() for quick, column in told if quick and not passes(schema, column)]
    assert wrong == []
    asked = ("category", "str") if rule.values or rule.pattern else ("float64", "int64", "Int64")
    missed = [c.tolist() for quick, c in told if not quick and c.dtype in asked and passes(schema, c)]
    assert missed == [], "what the tables of a store are made of is told"
    assert {quick for quick, _ in told} == {True, False}


LOOK = """
import sys
from pathlib import Path
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.store.tables import read_table
raw, store = map(Path, sys.argv[1:])
assert ingest_sweep(raw, store).problems == []
assert all(len(read_table(store, name, raw.name)) for name in ("trials", "samples", "nodes"))
print("pandera" in sys.modules)
"""


def test_a_good_sweep_is_ingested_and_read_without_pandera(raw, tmp_path):
    """Which takes a fifth of the time of a short command to import."""
    words = [sys.executable, "-c", LOOK, raw / SWEEPS[0], tmp_path]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_one_wrong_value_in_many_is_found(demo):
    samples = read_table(demo, "samples", sweeps(demo)[0], categories=True)
    middle = len(samples) // 2
    samples.loc[middle, "t_s"] = -1.0
    with pytest.raises(DataError, match=rf"row {middle}: t_s is -1.0, expected seconds since 1970"):
        validated("samples", samples, lambda row: f"row {row}")
