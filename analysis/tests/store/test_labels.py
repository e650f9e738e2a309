"""Columns of labels, made without objects: the same as pandas makes of plain texts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.labels import categorized, chosen, in_order, joined, of_parts, repeated
from ntier_analysis.store.tables import read_table

TEXTS, TIMES = ["db", "", "süß", "db"], [2, 1, 0, 3]
PLAIN = pd.Series(["db", "db", "", "db", "db", "db"])


def test_texts_that_are_repeated():
    made = pd.Series(repeated(TEXTS, TIMES))
    pd.testing.assert_series_equal(made, PLAIN)
    assert list(repeated(["süß"], [2])) == ["süß", "süß"]
    assert (len(repeated([], [])), repeated([], []).dtype) == (0, PLAIN.dtype)


def test_texts_by_number():
    pd.testing.assert_series_equal(pd.Series(chosen(["a", "b"], np.array([1, 0, 1]))), pd.Series(["b", "a", "b"]))


def test_categories_of_parts_are_sorted_and_occur_once():
    made = of_parts(TEXTS, TIMES)
    assert list(made) == list(PLAIN)
    assert list(made.categories) == ["", "db", "süß"]


def test_parts_are_joined_as_texts_are():
    parts = [pd.DataFrame({"t_s": [1.0, 2.0], "node": nodes}) for nodes in (["web1", "db1"], ["app1", "db1"])]
    whole = joined([categorized(part) for part in parts])
    assert list(whole["node"].cat.categories) == ["app1", "db1", "web1"]
    pd.testing.assert_frame_equal(whole.astype({"node": "str"}), pd.concat(parts, ignore_index=True))
    one = joined([categorized(parts[0]), parts[1]])
    pd.testing.assert_frame_equal(one, pd.concat(parts, ignore_index=True))


def test_categories_are_put_in_order_without_those_that_do_not_occur():
    column = pd.Categorical(["web1", "db1", None], categories=["web1", "app1", "db1"])
    made = in_order(pd.DataFrame({"node": column}))["node"]
    assert list(made.cat.categories) == ["db1", "web1"]
    assert made.tolist()[:2] == ["web1", "db1"]
    assert made.isna().tolist() == [False, False, True]


@pytest.mark.parametrize("table", ["samples", "interactions"])
def test_a_table_with_categories_is_the_same_table(tmp_path, table):
    store = unpack(tmp_path)
    texts, labels = (read_table(store, table, SWEEP, categories=c) for c in (False, True))
    columns = labels.select_dtypes("category").columns
    assert len(columns) > 2
    pd.testing.assert_frame_equal(labels.astype(dict.fromkeys(columns, "str")), texts)
    for name in columns:
        assert labels[name].cat.categories.tolist() == sorted(texts[name].dropna().unique())
