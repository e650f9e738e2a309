"""Figures of replicas: gaps of a collector, and which trials stand for their policies."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.figures import replicas

START_S = 1000.0
RUN_S = 40
RUN = {"run_start_s": START_S, "run_end_s": START_S + RUN_S, "ramp_up_start_s": START_S, "ramp_down_end_s": np.nan}


def rates(nodes=("middleware1",), **keys) -> pd.DataFrame:
    """Each node tells of 10 statements per second on db1 and 20 on db2."""
    t = START_S + np.arange(1, RUN_S + 1)
    rows = [
        pd.DataFrame({"node": node, "t_s": t, "item": item, "value": value})
        for node in nodes
        for item, value in (("db1", 10.0), ("db2", 20.0))
    ]
    return pd.concat(rows, ignore_index=True).assign(**keys)


def over_time(frame: pd.DataFrame) -> pd.DataFrame:
    return replicas.over_time(frame, SimpleNamespace(**RUN)).set_index("t_s")


def test_statements_of_several_middlewares_are_added():
    frame = over_time(rates(("middleware1", "middleware2")))
    assert (frame["db1"] == 20).all()
    assert (frame["db2"] == 40).all()


def test_a_second_that_one_middleware_lacks_is_a_gap_and_no_smaller_number():
    told = rates(("middleware1", "middleware2"))
    told.loc[(told["node"] == "middleware2") & (told["t_s"] == START_S + 20), "value"] = np.nan
    frame = over_time(told)
    assert frame.loc[20].isna().all()
    assert (frame.drop(index=20) == [20, 40]).all(axis=None)


def test_a_gap_of_a_collector_breaks_the_area():
    told = rates(trial="a")
    told = told[~told["t_s"].between(START_S + 10, START_S + 19)]
    trials = pd.DataFrame([RUN | {"trial": "a", "users": 1000, "valid": True, "invalid_reasons": "", "scale": 1.0}])
    drawing = replicas.statements(told, trials)
    assert "Where an area is broken, a sample is missing." in drawing.caption
    assert "(n = 60 values)" in drawing.caption
    assert [len(area.get_paths()) for area in drawing.figure.axes[0].collections] == [2, 2]
    whole = replicas.statements(rates(trial="a"), trials)
    assert "broken" not in whole.caption
    assert [len(area.get_paths()) for area in whole.figure.axes[0].collections] == [1, 1]


def policies(*trials: tuple):
    """(policy, trial, users, valid, whether its rates are known)"""
    table = pd.DataFrame([t[:4] for t in trials], columns=["label", "trial", "users", "valid"]).assign(**RUN, scale=1.0)
    table = table.assign(invalid_reasons=np.where(table["valid"], "", "failed"))
    told = pd.concat([rates(label=label, trial=trial) for label, trial, _, _, known in trials if known])
    share = pd.DataFrame({"item": ["db1", "db2"], "share": [1 / 3, 2 / 3], "low": 0.3, "high": 0.7})
    known = table[[t[4] for t in trials]]
    shares = known[["label", "trial", "users", "valid"]].merge(share, how="cross")
    shares["share"] = shares["share"].where(shares["valid"], 0.5)
    return replicas.policies(told, table, shares, pd.DataFrame())


@pytest.mark.parametrize("known", [True, False])
def test_an_invalid_repetition_does_not_stand_for_its_policy(known):
    bad = [("random", "u01000.r01", 1000, False, known), ("random", "u01000.r02", 1000, True, True)]
    drawing = policies(*bad, ("round_robin", "u01000.r01", 1000, True, True))
    drawn = drawing.data.drop_duplicates("policy").set_index("policy")["trial"].to_dict()
    assert drawn == {"random": "u01000.r02", "round_robin": "u01000.r01"}
    lines = [line for line in drawing.figure.axes[2].lines if line.get_marker() in replicas.MARKERS]
    assert [list(line.get_ydata()) for line in lines] == [[1 / 3], [2 / 3]]
    assert drawing.finding == ("Shares of the replicas at 1,000 users: random 0.33 to 0.67; round_robin 0.33 to 0.67.")


def test_policies_are_compared_at_the_highest_load_that_all_have():
    more = ("random", "u02000.r01", 2000, True, True)
    drawing = policies(("random", "u01000.r01", 1000, True, True), more, ("other", "u01000.r01", 1000, True, True))
    assert set(drawing.data["trial"]) == {"u01000.r01"}
    assert drawing.finding.startswith("Shares of the replicas at 1,000 users: ")
    apart = policies(more, ("other", "u01000.r01", 1000, False, True))
    assert apart.finding == (
        "Shares of the replicas: random 0.33 to 0.67 at 2,000 users; other 0.50 to 0.50 at 1,000 users (INVALID trial)."
    )
    assert "at the highest load of each policy" in apart.caption
