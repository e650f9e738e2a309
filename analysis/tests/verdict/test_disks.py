"""What moves with a database's disk: found, ruled out, or not known."""

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.verdict.moves import SOURCES, long_chains, looked_at, sentences

ALL = {"queue": 1.0, "statements": -1.0, "cpu": -1.0}


def samples(seconds: int, follows: dict[str, float], node="db1", seed=1, of=SOURCES) -> pd.DataFrame:
    """Once a second: a disk, and series of which some follow it (by so much beside their own noise)."""
    rng = np.random.default_rng(seed)
    disk = rng.normal(size=seconds)
    parts = []
    for name in of:
        resource, metric = SOURCES[name][0]
        value = disk if name == "disk" else follows.get(name, 0.0) * disk + rng.normal(size=seconds)
        rows = {"t_s": np.arange(seconds) + 0.5, "node": node, "item": "", "resource": resource, "metric": metric}
        parts.append(pd.DataFrame(rows | {"value": value}))
    return pd.concat(parts, ignore_index=True)


def looked(seconds: int, follows: dict[str, float], **other):
    return looked_at(samples(seconds, follows, **other), ["db1"], 0.0, float(seconds))[0]


def test_what_moves_is_found_in_a_short_run():
    one = looked(60, ALL)
    assert one.moved({("queue", 1)}) is True
    assert one.moved({("statements", -1), ("cpu", -1)}) is True


def test_nothing_is_ruled_out_by_a_short_run():
    """40 unrelated values leave correlations of 0.3 possible."""
    assert looked(40, {}).moved({("queue", 1)}) is None
    assert looked(40, {}).moved({("queue", 1), ("statements", -1), ("cpu", -1)}) is None


def test_a_long_run_of_unrelated_series_rules_it_out():
    assert looked(1000, {}).moved({("queue", 1)}) is False
    assert looked(1000, ALL).moved({("queue", -1)}) is False


def test_what_may_be_reached_through_another_series_is_not_ruled_out():
    """The disk moves the queue; statements follow it too weakly to be a step, but not so weakly that they cannot be."""
    one = looked(1000, {"queue": 2.0, "statements": 0.3})
    assert one.moved({("statements", 1)}) is None


def test_a_series_that_never_changes_does_not_move():
    rows = samples(1000, {"queue": 1.0})
    rows.loc[rows["metric"] == "threads_running", "value"] = 1.0
    (one,) = looked_at(rows, ["db1"], 0.0, 1000.0)
    assert one.moved({("queue", 1)}) is False


@pytest.mark.parametrize("lacking", ["disk", "queue"])
def test_what_was_not_measured_is_not_known(lacking):
    one = looked(1000, {}, of=[name for name in SOURCES if name != lacking])
    assert one.moved({("queue", 1)}) is None
    (one,) = looked_at(samples(40, {})[:0], ["db1"], 0.0, 40.0)
    assert one.moved({("queue", 1)}) is None


def test_nothing_found_nothing_measured_and_one_link_are_told_apart():
    (quiet,) = sentences({"t1": [looked(40, {})], "t2": [looked(50, {})]})
    assert quiet.startswith("no link was found with the disk of db1 (2 trials of 40 to 50 s)")
    (dark,) = sentences({"t1": [looked(40, {}, of=["cpu", "queue"])]})
    assert dark == "not measured: the disk, or anything that could move with it, of db1 (1 trial of 40 s)"
    single = looked(200, {"cpu": 3.0}, of=["disk", "cpu"])
    assert long_chains([single]) == []
    (one,) = sentences({"t1": [single]})
    assert one.startswith("t1: db1: when its disk is busy, cpu up (r +0.9")
    assert one.endswith("; one link only, no chain")
    assert sentences({}) == ["not known what moves with the disk of a database: no valid trial has one"]
    assert sentences({"t1": []}) == sentences({})
