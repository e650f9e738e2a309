"""What texts, tables and notebooks say of loads that are no users, of slow systems, of many different values, and of
imports that lack what a report usually has."""

from __future__ import annotations

from pathlib import Path

import good_import
import numpy as np
import pandas as pd
import pytest
from ntier_analysis.api import Store, Verdict
from ntier_analysis.figures.drawing import Origin, write_csv
from ntier_analysis.importing import import_folder
from ntier_analysis.report import tables, write_report
from ntier_analysis.report.meaning import meaning
from ntier_analysis.report.page import clear
from ntier_analysis.report.replicas import _conditions
from ntier_analysis.statistics.chains import Link, Step
from ntier_analysis.statistics.values import Interval
from ntier_analysis.texts import verdict_text
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Load
from ntier_analysis.verdict.load import Verdict as OfTrial
from ntier_analysis.verdict.moves import Chain, Looked, as_json

THREAD = {
    "tier": "db", "resource": "thread", "nodes": ["db1"], "saturation": 0.9, "interval": [0.8, 1.0], "item": "ldm2",
}  # fmt: skip
FOUND = {
    "topology": "4", "verdict": "single", "kind": "stable", "bottlenecks": [THREAD], "max_throughput_per_s": 80.0,
    "max_throughput_interval": [70.0, 90.0], "max_throughput_at_least": True, "knee_users": 40.0, "load_model": "work",
    "factor": {"name": "users", "unit": ""}, "trials": [], "evidence": [], "next": [], "migration": [],
    "analysis_version": "0",
}  # fmt: skip


def over_sleep(**of_load) -> SweepVerdict:
    """Over a pause: the number of users is the same at each value."""
    loads = [Load(f"s{n}.r01", 4, 4.0, 0.0312, 9.0, 7.0, 0.0, 60.0, True, factor="sleep_s", unit="s", value=value)
             for n, value in enumerate((0.1, 2.0))]  # fmt: skip
    moved = {"from_users": 4, "to_users": 4, "from_value": 0.1, "to_value": 2.0}
    moved |= {side: {"tier": tier, "resource": "cpu"} for side, tier in (("from", "app"), ("to", "db"))}
    return SweepVerdict(
        "s", "1/1", "unknown", max_throughput=Interval(0.0312, 0.0298, 0.0331, 0.001, 3), migration=[moved],
        trials=[(load, OfTrial("none")) for load in loads], factor="sleep_s", factor_unit="s", **of_load,
    )  # fmt: skip


def test_the_verdicts_text_names_the_values_of_a_factor_and_the_digits_of_a_slow_system():
    lines = verdict_text(over_sleep()).splitlines()
    assert "  migration: app cpu at sleep_s 0.1 s -> db cpu at sleep_s 2 s" in lines
    assert "  maximum throughput at least 0.0312 [0.0298, 0.0331]/s" in lines
    head, first, second = lines[2:5]
    assert head.split()[:3] == ["trial", "sleep_s", "X/s"]
    assert (first.split()[:3], second.split()[1]) == (["s0.r01", "0.1", "0.0312"], "2")


def test_the_verdicts_text_calls_workers_so():
    found = over_sleep(load_model="work")
    found.factor, found.factor_unit = "users", ""
    found.migration = [{k: v for k, v in found.migration[0].items() if "value" not in k}]
    said = verdict_text(found)
    assert "app cpu at 4 workers -> db cpu at 4 workers" in said
    assert "workers" in said.splitlines()[2]


def test_a_thread_is_named_and_the_knee_of_workers_is_one_of_workers():
    verdict = Verdict(FOUND, 1.0)
    (limit,) = verdict.bottlenecks
    assert limit.item == "ldm2"
    assert str(limit) == "db thread ldm2 on db1: 0.90 [0.80, 1.00]"
    assert '<th style="text-align:left">knee, at least</th><td style="text-align:left">40 workers</td>' in (
        verdict._repr_html_()
    )


def test_a_full_thread_is_not_to_be_bought():
    trials = pd.DataFrame({"users": [1], "valid": [True], "response_time_mean_ms": [9.0]})
    told = " ".join(meaning(FOUND, trials, 1.0))
    assert "spread the work of the db thread ldm2 over several, or let it do less." in told
    assert "add db" not in told


def test_of_many_values_provenance_has_the_ends():
    assert tables._values(pd.Series([7.0, 7.5])) == "7, 7.5"
    assert tables._values(pd.Series(np.linspace(6.9, 7.1, 2001))) == "6.9 to 7.1 (2001 different values)"
    assert tables._values(pd.Series([None, "a"])) == "a"
    assert tables._values(pd.Series([None, None])) == "–"


def test_a_limit_that_differs_between_trials_is_shown_with_both_ends():
    checks = pd.DataFrame({"id": "C1", "title": "t", "required": True, "outcome": "pass", "unit": "pct",
                           "value": [1.0, 2.0], "limit": [5.0, 9.0]})  # fmt: skip
    (row,) = tables.check_rows(checks)
    assert row["limit"] == "5.00 … 9.00 %"
    assert tables.check_rows(checks.assign(limit=5.0))[0]["limit"] == "5.00 %"


def test_figures_of_an_earlier_report_go_and_other_files_stay(tmp_path):
    origin = Origin("s", "1/1", ("a",), 1.0)
    for name in ("course-u4.r01-db1", "throughput"):
        write_csv(pd.DataFrame({"x": [1]}), tmp_path / f"{name}.csv", origin)
        for end in ("png", "pdf"):
            (tmp_path / f"{name}.{end}").write_bytes(b"x")
    for name in ("mine.csv", "mine.png"):
        (tmp_path / name).write_text("a,b\n")
    clear(tmp_path, {"throughput"})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "mine.csv", "mine.png", "throughput.csv", "throughput.pdf", "throughput.png",
    ]  # fmt: skip
    clear(tmp_path / "none", {})


def test_chains_as_json_tell_no_link_and_not_measured_apart():
    steps = [Step("disk", "statements", -0.6, -1), Step("statements", "cpu", 0.5, -1)]
    links = [Link("disk", "statements", -0.6, 0.001, 40.0)]
    seen = frozenset({"disk", "cpu", "statements"})
    looked = {
        "u1": [Looked(Chain("db1", steps, links, 2), seen, links, 40), Looked(Chain("db2", [], [], 2), seen, [], 40)],
        "u2": [Looked(Chain("db1", [], [], 1), frozenset({"cpu"}), [], 40)],
    }
    found = as_json(looked)
    one, quiet = found["u1"]
    assert one["turned_away"]
    assert len(one["steps"]) == 2
    assert one["text"].startswith("db1: when its disk is busy")
    assert (quiet["steps"], quiet["text"], quiet["measured"]) == ([], "", ["cpu", "disk", "statements"])
    assert found["u2"][0]["measured"] == ["cpu"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> Path:
    """A sweep over a pause of which a disk alone was measured, and no single interaction."""
    base = tmp_path_factory.mktemp("imported")
    files = good_import.files(interactions=False)
    files["trials"] = files["trials"].assign(factor="sleep_s", factor_unit="s", factor_value=[0.1, 0.5, 2.0])
    files["samples"] = files["samples"].query("node == 'db1'").assign(resource="disk", item="vda")
    import_folder(good_import.write(base / "in", files), base / "store")
    return base / "store"


def test_a_sweep_over_a_factor_shows_its_values_not_its_users(imported):
    assert repr(Store(imported).sweep("s")).endswith(", sleep_s 0.1 to 2 s")


@pytest.mark.usefixtures("page_alone")
def test_a_page_says_that_nothing_of_a_kind_was_measured(imported, tmp_path):
    html = write_report(imported, "s", tmp_path / "out").read_text()
    assert "<p>No CPU of a node was measured in a run phase.</p>" in html
    assert "<p>No single interaction of a valid trial is on record.</p>" in html


def test_a_store_keeps_few_of_its_sweeps_in_memory(tmp_path):
    files = good_import.files(interactions=False)
    parts = {name: pd.concat([frame.assign(sweep=f"s{n}") for n in range(4)]) for name, frame in files.items()}
    import_folder(good_import.write(tmp_path / "in", parts), tmp_path / "store")
    store = Store(tmp_path / "store")
    for sweep in store:
        assert store.sweep(sweep.name) is sweep
        assert len(sweep.trials) == 3
    assert len(store._sweeps) == 2


class Side:
    """As of `read_sweep`, what a comparison of policies asks for."""

    def __init__(self, sweep: str, **columns):
        self.sweep = sweep
        self.trials = pd.DataFrame({"mix": ["a"], "scale": [0.2], "think_time_s": [7.0], "target": ["local"]} | columns)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"scale": [0.1]}, "x and y: scale is 0.2 and 0.1: response times and throughput of different scale models"),
        ({"mix": ["b"]}, "x and y: mix is a and b: the mixes of interactions differ"),
        ({"mix": [None]}, ""),
        ({"target": ["hosts"]}, ""),
    ],
)
def test_policies_are_compared_under_equal_conditions_only(columns, said):
    found = _conditions([Side("x"), Side("y", **columns)])
    assert bool(found) == bool(said)
    assert found.startswith(said)


def test_every_two_policies_are_asked_whether_their_conditions_are_equal():
    assert _conditions([Side("x", mix=[None]), Side("y"), Side("z", mix=["b"])]).startswith("y and z: mix is a and b")


def test_the_unit_stands_behind_the_value_and_not_behind_its_explanation():
    assert tables._values(pd.Series([float(n) for n in range(2001)]), " s") == "0 to 2000 s (2001 different values)"
    assert (tables._values(pd.Series([40.0]), " s"), tables._values(pd.Series([None]), " s")) == ("40 s", "–")
