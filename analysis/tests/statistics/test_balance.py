"""Choices judged from begin and end of the statements: a simulated balancer whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.trace import middleware_trace, seen_pending
from ntier_analysis.statistics.balance import (
    choice_table,
    natural,
    rebuild,
    regret,
    regret_summary,
    replica_shares,
)
from replicas import DBS, simulate

SECOND = 10**9


def summary(trace: pd.DataFrame, start_s: float = 999.0, end_s: float = 1e6) -> pd.Series:
    return regret_summary(choice_table(trace, DBS, seen_pending(trace["seen"], 3), start_s, end_s))


def test_a_perfect_balancer_has_no_regret_and_saw_what_was_there():
    figures = summary(simulate("least_pending"))
    assert figures["choices"] == 4000
    assert figures["least"] == 1.0
    assert figures["first_of_least"] == 1.0
    assert figures["regret_max"] == 0
    assert figures["seen_confirmed"] == 1.0


def test_policies_that_do_not_look_regret_it():
    robin, random = (summary(simulate(p, load=6.0)) for p in ("round_robin", "random"))
    assert robin["least"] < 0.7
    assert random["least"] < robin["least"]  # at random is worse than in turn
    assert random["regret_mean"] > 1
    assert np.isnan(robin["seen_confirmed"])


def test_the_race_between_choice_and_count_shows_only_if_those_waiting_count():
    """5 ms from choice to count, a choice every 2.5 ms: the policy keeps its word by what it counts, and is often
    beaten by what it does not know."""
    figures = summary(simulate("least_pending", load=4.0, delay_s=0.005))
    assert figures["least"] == 1.0
    assert 0.3 < figures["least_waiting"] < 0.9


def test_the_rebuilt_vector_is_that_of_a_plain_count():
    trace = simulate("random", n=300, load=5.0, delay_s=0.001)
    rebuilt, chose = rebuild(trace, DBS, 0, 2**62)
    for i in (0, 17, 150, 299):
        at = chose["choice_ns"].iloc[i]
        for r, name in enumerate(DBS):
            rows = trace[trace["replica"] == name]
            assert rebuilt.pending[i, r] == int(((rows["begin_ns"] < at) & (at <= rows["end_ns"])).sum())
    assert regret(rebuilt.pending, rebuilt.chosen).min() == 0


def test_statements_from_before_the_run_count_as_pending_and_their_choices_do_not():
    trace = simulate("least_pending", load=6.0)
    half = trace["choice_ns"].iloc[2000] / SECOND
    figures = summary(trace, half)
    assert figures["choices"] == pytest.approx(2000, abs=1)
    assert figures["least"] == 1.0


def test_writes_are_pending_and_no_choices():
    reads = simulate("least_pending", load=6.0)
    writes = reads.iloc[::10].assign(choice_ns=0, seen="", number=lambda f: f["number"] + 10_000)
    both = pd.concat([reads, writes], ignore_index=True)
    seen = np.vstack([seen_pending(reads["seen"], 3), np.full((len(writes), 3), np.nan)])
    figures = regret_summary(choice_table(both, DBS, seen, 0, 1e6))
    assert figures["choices"] == len(reads)
    assert figures["least"] < 1.0  # this policy did not count them


def test_lost_records_are_counted_by_their_numbers():
    trace = simulate("least_pending")
    kept = trace.drop(index=range(100, 130)).reset_index(drop=True)
    assert summary(kept)["lost"] == 30
    assert summary(kept)["least"] > 0.9


def write(path, lines):
    path.write_text("number,choice_ns,begin_ns,end_ns,replica,seen\n" + "\n".join(lines) + "\n")
    return path


def test_a_trace_is_read_in_the_order_of_its_numbers(tmp_path):
    path = write(tmp_path / "t.csv", ["2,0,20,30,db1,", "1,5,10,40,db2,1|0", "3,50,0,0,db2,0|"])
    frame = middleware_trace(path)
    assert frame["number"].tolist() == [1, 2, 3]
    assert seen_pending(frame["seen"][frame["choice_ns"] > 0], 2).tolist()[0] == [1, 0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,5,10,40,db1,0", "1,5,10,40,db1,0"], "record 1 occurs twice"),
        (["1,5,10,9,db1,0"], "record 1: choice, begin and end are not in order"),
        (["1,11,10,12,db1,0"], "not in order"),
        (["1,0,0,0,db1,"], "not in order"),
        (["1,5,10,x,db1,0"], r"t\.csv:2: end_ns is 'x'"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_record(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        middleware_trace(write(tmp_path / "t.csv", lines))


def test_a_trace_of_another_number_of_replicas_is_refused():
    with pytest.raises(DataError, match="2 numbers seen, but 3 replicas"):
        seen_pending(pd.Series(["1|0"]), 3)


def test_replicas_are_in_the_order_of_their_numbers():
    assert natural(["db10", "db2", "db1", "db2"]) == ["db1", "db2", "db10"]


def test_shares_have_intervals_that_hold_the_truth():
    """200 runs of 60 s in which each second's statements fall on db1 with probability 0.3."""
    rng, inside = np.random.default_rng(3), 0
    for _ in range(200):
        first = rng.binomial(40, 0.3, 60)
        t = np.tile(np.arange(60.0), 2)
        rates = pd.DataFrame({"t_s": t, "item": np.repeat(["db1", "db2"], 60), "value": np.r_[first, 40 - first]})
        shares = replica_shares(rates, 0.0, 60.0).set_index("item")
        inside += shares.loc["db1", "low"] <= 0.3 <= shares.loc["db1", "high"]
        assert shares["share"].sum() == pytest.approx(1)
        assert shares["per_s"].sum() == pytest.approx(40)
    assert 0.90 <= inside / 200 <= 0.99
