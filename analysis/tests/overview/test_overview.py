"""All sweeps of a store side by side."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.figures import overview as figures
from ntier_analysis.figures.interactions import by_interaction, long_interactions
from ntier_analysis.overview import lacking, overview, pairs
from ntier_analysis.store.tables import read_table, write_tables

DEFAULT = SWEEP.replace("1M", "1P")
POSTGRESQL = f"{DEFAULT}.xd86811"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return unpack(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def frame(store) -> pd.DataFrame:
    return overview(store)


def test_a_row_per_sweep(frame):
    rows = frame.set_index("sweep")
    assert rows.loc[SWEEP, ["dbms", "nodes", "verdict", "bottleneck"]].tolist() == ["M", 4, "single", "db cpu"]
    assert rows.loc[SWEEP, "nominal_per_s"] == pytest.approx(rows.loc[SWEEP, "max_throughput_per_s"] / 0.2)
    assert rows["at_least"].to_dict() == {SWEEP: False, DEFAULT: True, POSTGRESQL: True}


def test_numbers_are_numbers_also_where_no_sweep_has_a_maximum(store, tmp_path):
    rows = read_table(store, "trials", SWEEP).assign(valid=False, slo_ms=np.nan)
    nothing = {name: read_table(store, name, SWEEP).iloc[:0] for name in ("samples", "interactions")}
    write_tables(tmp_path, SWEEP, nothing | {"trials": rows, "nodes": read_table(store, "nodes", SWEEP)})
    frame = overview(tmp_path)
    numbers = frame[["nominal_per_s", "low", "high", "knee_users"]]
    assert numbers.isna().all(axis=None)
    assert {kind.kind for kind in numbers.dtypes} == {"f"}


def test_users_within_the_objective_are_those_before_the_first_load_that_breaks_it(store, frame):
    trials = read_table(store, "trials", SWEEP).sort_values("users")
    within = trials.set_index("users")["response_time_p95_ms"] <= 1000
    assert within.loc[3000]
    assert not within.loc[4000]
    assert frame.set_index("sweep").loc[SWEEP, "users_within_slo"] == 3000


def test_pairs_differ_in_one_thing_only(frame):
    assert pairs(frame, "dbms") == [(SWEEP, DEFAULT), (SWEEP, POSTGRESQL)]
    assert pairs(frame.assign(setting=["think_time_s 7", "think_time_s 7", "think_time_s 1"]), "dbms") == [
        (SWEEP, DEFAULT)
    ]
    assert pairs(frame.assign(valid=[5, 0, 0]), "dbms") == []
    assert pairs(frame, "low_cost") == []
    assert pairs(frame.assign(scale=np.arange(3)), "dbms") == []
    low = pd.concat([frame, frame.iloc[:1].assign(sweep="low", low_cost=True)], ignore_index=True)
    assert pairs(low, "low_cost") == [(SWEEP, "low")]


def test_what_is_lacking_is_said(frame):
    said = " ".join(lacking(frame))
    assert "maps and migration over topologies" in said
    assert "node types" in said
    assert "comparison of DBMS" not in said
    assert "comparison of DBMS" in " ".join(lacking(frame.iloc[:1]))


def test_figures_say_what_they_show(frame):
    drawing = figures.maxima(frame)
    top = rf"{SWEEP} with 577 \[\d+, \d+\] interactions/s \(nominal\)"
    rest = r", and 2 others may reach as much\. Of 2 sweeps only a lower bound is known\."
    assert re.fullmatch(f"Highest measured maximum: {top}{rest}", drawing.finding)
    assert "of the knee's users" in figures.reach(frame).finding
    nothing = frame.assign(nominal_per_s=np.nan, users_within_slo=np.nan, knee_users=np.nan)
    assert figures.maxima(nothing).finding == "No sweep has a maximum throughput."
    assert figures.maxima(nothing.assign(valid=0)).finding == "No sweep has a valid trial."
    assert "No sweep has both" in figures.reach(nothing).finding


def test_a_lower_bound_has_no_upper_end(frame):
    bound = frame.assign(at_least=True)
    drawing = figures.maxima(bound)
    assert re.search(r" with at least 577 \[\d+, ∞\) interactions/s", drawing.finding)
    bars = [c.get_segments()[0] for c in drawing.figure.axes[0].collections]
    assert [bar[1][0] for bar in bars] == pytest.approx(drawing.data["nominal_per_s"].tolist())
    unknown = bound.assign(low=np.nan, high=np.nan)
    assert " with at least 577 interactions/s" in figures.maxima(unknown).finding


def test_maxima_of_other_work_are_not_ranked_and_clear_ones_have_no_rival(frame):
    clear = figures.maxima(frame.assign(at_least=False, high=frame["max_throughput_per_s"])).finding
    assert clear.endswith("interactions/s (nominal).")
    other = figures.maxima(frame.assign(work=["browse_only", "read_write", "read_write"])).finding
    assert other.startswith("Highest measured maximum of 2 kinds of work, which are not ranked among each other: ")
    assert f"; {SWEEP} with 577 " in other


def test_the_knee_of_a_lower_bound_is_hollow_and_no_part_of_the_median(frame):
    rows = frame.assign(knee_users=[4000.0, 1000.0, 1000.0], users_within_slo=[3000.0, 1000.0, 1000.0])
    drawing = figures.reach(rows)
    assert drawing.finding.startswith("The objective is kept up to 75 % of the knee's users (median over 1 sweep)")
    knees = {line.get_label(): line for line in drawing.figure.axes[0].lines}
    assert np.isfinite(knees["knee"].get_xdata()).sum() == 1
    assert np.isfinite(knees["knee, at least"].get_xdata()).sum() == 2
    assert knees["knee, at least"].get_markerfacecolor() == "none"
    only = figures.reach(rows.assign(at_least=True)).finding
    assert only == "Of the knees of 3 sweeps only lower bounds are known."


def test_a_sweep_without_a_maximum_has_no_lower_bound(frame):
    said = " ".join(lacking(frame))
    assert f"too few loads beyond the knee): {DEFAULT}, {POSTGRESQL}." in said
    assert "lower bounds" not in " ".join(lacking(frame.assign(nominal_per_s=np.nan)))


def test_errors_are_counted_beside_the_successes(store):
    done = read_table(store, "interactions", DEFAULT)
    run = done[(done["trial"] == "u00100.r01") & (done["phase"] == "run")].reset_index(drop=True)
    before = by_interaction(run).set_index("interaction")
    name = before.index[0]
    spoiled = run.assign(ok=run["ok"] & ~((run["interaction"] == name) & (run.index % 2 == 0)))
    after = by_interaction(spoiled).set_index("interaction")
    assert after["errors"].sum() == (~spoiled["ok"]).sum() > (~run["ok"]).sum()
    assert (after["n"] + after["errors"]).to_dict() == (before["n"] + before["errors"]).to_dict()
    assert after.loc[name, "n"] < before.loc[name, "n"]
    none = by_interaction(run.assign(ok=run["ok"] & (run["interaction"] != name))).set_index("interaction")
    assert (none.loc[name, "n"], none.loc[name, "share_of_time"]) == (0, 0)
    nothing = run.assign(ok=run["ok"] & (run["interaction"] != name))
    assert name not in set(long_interactions(nothing, "u00100.r01", 100).data["interaction"])


def test_shares_of_the_response_time_sum_to_one(store):
    done = read_table(store, "interactions", DEFAULT)
    table = by_interaction(done[done["trial"] == "u00100.r01"])
    assert table["share_of_time"].sum() == pytest.approx(1)
    assert table["share_of_time"].is_monotonic_decreasing
    drawing = long_interactions(done, "u00100.r01", 100)
    assert drawing.finding.startswith(table["interaction"].iloc[0])
    assert long_interactions(done, "none", 1).finding == "There are no interactions."


def test_maxima_of_other_scales_are_not_ranked_and_bear_their_scale(frame):
    """A nominal maximum of a small model is equal to that of a large one only if CPU per interaction does not depend on
    the scale, which small quotas make it do."""
    part = np.array([1, 0.5, 0.5])
    scaled = {name: frame[name] * part for name in ("scale", "max_throughput_per_s", "low", "high")}
    other = figures.maxima(frame.assign(work="browse_only", **scaled))
    assert other.finding.startswith("Highest measured maximum of 2 scales, which are not ranked among each other: ")
    assert f"; {SWEEP} with 577 " in other.finding
    labels = [text.get_text() for text in other.figure.axes[0].get_yticklabels()]
    assert f"{SWEEP} (scale 0.2)" in labels
    assert "different scales" in other.caption
    same = figures.maxima(frame)
    assert "scales" not in same.finding + same.caption
    assert SWEEP in [text.get_text() for text in same.figure.axes[0].get_yticklabels()]


def test_the_maximum_of_a_slow_system_keeps_its_digits(frame):
    numbers = ["max_throughput_per_s", "low", "high", "nominal_per_s"]
    slow = frame.assign(at_least=False, **{name: frame[name] / 10_000 for name in numbers})
    assert re.search(rf"{SWEEP} with 0\.0577 \[0\.05\d\d, 0\.0\d\d\d\] interactions/s", figures.maxima(slow).finding)


def test_a_figure_of_many_sweeps_has_a_size_that_can_be_drawn(frame):
    many = pd.concat([frame] * 100, ignore_index=True).assign(sweep=lambda f: [f"s{i}" for i in f.index])
    for drawing in (figures.maxima(many), figures.reach(many)):
        assert drawing.figure.get_figheight() * 300 < 2**16, "matplotlib draws no more pixels"
        assert "200 others are in the table" in drawing.caption
        assert len(drawing.data) == 300


def test_an_empty_store_has_an_overview_without_a_row(tmp_path):
    (tmp_path / "trials").mkdir()
    nothing = overview(tmp_path)
    assert len(nothing) == 0
    assert len(lacking(nothing)) == 3
    assert pairs(nothing, "dbms") == []
    assert figures.maxima(nothing).finding == "No sweep has a valid trial."
    assert "No sweep has both" in figures.reach(nothing).finding
