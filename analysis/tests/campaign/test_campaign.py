"""From a store of known truth to maps, groups, ratios, scale-out rows and costs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import mesh
import numpy as np
import pandas as pd
import pytest
from ntier_analysis.campaign.cells import Campaign, Cell, campaign
from ntier_analysis.campaign.compare import groups, ratios, scale_outs
from ntier_analysis.campaign.costs import Prices, answer, cheapest, kinds, read_prices, within
from ntier_analysis.campaign.store import read_campaign
from ntier_analysis.cli import app
from ntier_analysis.contracts import implied
from ntier_analysis.errors import DataError
from ntier_analysis.overview import overview
from ntier_analysis.report.maps import _rows
from ntier_analysis.store.tables import read_table, sweeps, write_table
from scipy import stats
from typer.testing import CliRunner

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def store(made_once) -> Path:
    def make(folder: Path) -> None:
        skip = ("1/2/1/2M", "1/2/1/1P", "1/2/1/4P")
        mesh.write_mesh(folder, databases=(1, 2, 4), apps=(1, 2), kinds=("M", "P"), skip=skip, judged=True)
        mesh.write_sweep(folder, "1/1/1/1M", middleware="haproxy", judged=True)

    return made_once("campaign", make)


@pytest.fixture(scope="module")
def measured(store) -> Campaign:
    return read_campaign(store)


def cells(measured: Campaign, kind: str, middleware: str = "shardingsphere") -> dict[str, Cell]:
    return {str(c.topology): c for c in measured.cells if c.map_key.dbms == kind and c.map_key.middleware == middleware}


def test_each_cell_has_the_truth(measured):
    for name, cell in (cells(measured, "M") | cells(measured, "P")).items():
        truth = mesh.capacity_per_s(name)
        assert cell.max_per_s == pytest.approx(truth, rel=0.05), name
        limit = min(mesh.stations(cell.topology), key=lambda s: s.capacity_per_s).name
        assert (limit, "cpu") in cell.bottlenecks, name


def test_maps_are_those_conditions_that_were_measured(measured):
    assert {c.slug for c in measured.maps} == {
        "M.browse_only.shardingsphere.1-1",
        "M.browse_only.haproxy.1-1",
        "P.browse_only.shardingsphere.1-1",
    }
    assert "1/2/1/2M" not in cells(measured, "M")
    assert any("Measured only once" in w for w in measured.warnings)


def test_versions_that_differ_between_sweeps_are_a_warning(store, tmp_path):
    other = tmp_path / "store"
    shutil.copytree(store, other)
    for name, version in zip(sweeps(other)[:3], ("9.7.4", "9.8.0", "unknown"), strict=True):
        folder = tmp_path / "raw" / name / "u01000.r01"
        folder.mkdir(parents=True)
        manifest = {
            "ntier_version": "1", "sweep": name, "trial": "u01000.r01", "topology": "1/1/1/1M", "mix": "browse_only",
            "middleware": "shardingsphere", "data_profile": "small", "users": 1000, "users_real": 1000, "scale": 1.0,
            "rep": 1, "seed": 1, "phases": [],
            "versions": {"mysql.running.mysql": version, "web.running.apache": "2.4.66", "terraform": version},
        }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(manifest))
    a, b, _ = sweeps(other)[:3]
    told = f"mysql.running.mysql differs: 9.7.4 in {a}; 9.8.0 in {b}. A difference in the map may come from the version"
    (warning,) = [w for w in read_campaign(other).warnings if "9.8.0" in w]
    assert warning.startswith(told)


def test_groups_are_the_regions_of_the_truth(measured):
    """1/1/1/1M and 1/2/1/1M: one database; 1/1/1/2M and 1/1/1/4M: one application server; 1/2/1/4M: the middleware."""
    mysql = cells(measured, "M")
    letter = groups(list(mysql.values())).letters
    of = {name: letter.get(c.sweep, "") for name, c in mysql.items()}
    assert of == {"1/1/1/1M": "b", "1/2/1/1M": "b", "1/1/1/2M": "a", "1/1/1/4M": "a", "1/2/1/4M": ""}


def test_steps_say_what_the_next_node_adds(measured):
    mysql = cells(measured, "M")
    name = {c.sweep: k for k, c in mysql.items()}
    steps = {(name[p.b], name[p.a]): p for p in groups(list(mysql.values())).steps}
    assert set(steps) == {
        ("1/1/1/1M", "1/1/1/2M"),
        ("1/1/1/2M", "1/1/1/4M"),
        ("1/2/1/1M", "1/2/1/4M"),
        ("1/1/1/1M", "1/2/1/1M"),
        ("1/1/1/4M", "1/2/1/4M"),
    }
    assert steps["1/1/1/1M", "1/1/1/2M"].relation == "higher"
    assert steps["1/1/1/1M", "1/1/1/2M"].ratio.value == pytest.approx(625 / 526, rel=0.03)
    assert steps["1/1/1/2M", "1/1/1/4M"].relation == "same"


def test_ratios_between_maps_that_differ_in_one_thing(measured):
    compared = {(r.aspect, r.other.slug): r for r in ratios(measured)}
    assert set(compared) == {
        ("dbms", "P.browse_only.shardingsphere.1-1"),
        ("middleware", "M.browse_only.shardingsphere.1-1"),
    }
    by_place = compared["dbms", "P.browse_only.shardingsphere.1-1"].pairs
    assert (2, 2) not in by_place  # not measured with MySQL
    assert by_place[1, 1].ratio.value == pytest.approx(0.5, rel=0.05)
    assert by_place[1, 1].relation == "lower"
    assert by_place[4, 1].relation == "same"  # both limited by the application server
    assert compared["middleware", "M.browse_only.shardingsphere.1-1"].pairs[1, 1].relation in ("same", "undecided")


def test_scale_out_rows_need_three_points(measured):
    rows = scale_outs(list(cells(measured, "M").values()))
    assert [r.app for r in rows] == [1]  # the second row has a hole
    # a plateau of the application server is no law of scaling, and three points test one law only
    assert "Amdahl's law does not fit" in rows[0].words
    assert "3 points cannot test" in rows[0].words


def test_lower_bounds_are_not_compared(tmp_path):
    mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(500, 1000, 1500), judged=True)
    mesh.write_sweep(tmp_path, "1/1/1/2M", loads=(500, 1000, 1500), judged=True)
    measured = read_campaign(tmp_path)
    assert {c.limit for c in measured.cells} == {"no limit yet"}
    assert all(c.at_least and c.estimate is None for c in measured.cells)
    assert groups(measured.cells).letters == {}


def bounded(of: Campaign, *topologies: str) -> Campaign:
    """The same with lower bounds as the maxima of these topologies, without names: of all."""
    maps = {
        k: [replace(c, at_least=not topologies or str(c.topology) in topologies) for c in v] for k, v in of.maps.items()
    }
    return replace(of, maps=maps)


def test_lower_bounds_of_a_short_plateau_decide_nothing_among_themselves(measured):
    bounds = bounded(measured)
    mysql = list(cells(bounds, "M").values())
    found = groups(mysql)
    assert all(c.estimate for c in mysql)
    assert found.letters == {}
    assert {p.relation for p in (*found.pairs, *found.steps)} == {"undecided"}
    assert {p.relation for r in ratios(bounds) for p in r.pairs.values()} == {"undecided"}
    assert scale_outs(mysql) == []


def test_a_lower_bound_decides_on_its_own_side(measured):
    """1/1/1/1M < 1/1/1/2M = 1/1/1/4M by the truth."""
    for bound, first, second in (("1/1/1/2M", "higher", "undecided"), ("1/1/1/1M", "undecided", "same")):
        mysql = cells(bounded(measured, bound), "M")
        name = {c.sweep: k for k, c in mysql.items()}
        found = groups(list(mysql.values()))
        steps = {(name[p.b], name[p.a]): p.relation for p in found.steps}
        assert (steps["1/1/1/1M", "1/1/1/2M"], steps["1/1/1/2M", "1/1/1/4M"]) == (first, second)
        assert mysql[bound].sweep not in found.letters
        assert scale_outs(list(mysql.values())) == []  # two points are left
    for bound, relation in (("1/1/1/1P", "undecided"), ("1/1/1/1M", "lower")):  # PostgreSQL has half of MySQL's
        compared = {r.aspect: r for r in ratios(bounded(measured, bound))}
        assert compared["dbms"].pairs[1, 1].relation == relation


def test_scales_that_differ_are_nominal_and_said(store, tmp_path):
    one = mesh.write_sweep(tmp_path, "1/1/1/1M", scale=0.1, judged=True)
    other = mesh.write_sweep(tmp_path, "1/1/1/2M", scale=0.2, judged=True)
    measured = read_campaign(tmp_path, [one, other])
    assert any("Scales differ (0.1, 0.2)" in w for w in measured.warnings)
    assert cells(measured, "M")["1/1/1/1M"].max_per_s == pytest.approx(mesh.capacity_per_s("1/1/1/1M"), rel=0.05)


def test_of_two_in_one_place_the_one_with_more_valid_trials_counts(measured):
    cell = measured.cells[0]
    other = replace(cell, sweep="imported", valid=cell.valid - 1)
    kept = campaign([other, cell])
    assert [c.sweep for c in kept.cells] == [cell.sweep]
    assert "imported is left out" in kept.warnings[0]


def test_sweeps_with_names_of_their_own_share_a_map_if_wanted(measured):
    first, second = cells(measured, "M")["1/1/1/1M"], cells(measured, "M")["1/1/1/2M"]
    named = replace(second, map_key=replace(second.map_key, variant="quiet"))
    assert len(campaign([first, named]).maps) == 2
    joined = campaign([first, named], join_names=True)
    assert [len(c) for c in joined.maps.values()] == [2]
    assert "(quiet)" in joined.warnings[0]


def test_sweeps_on_other_data_are_in_a_map_of_their_own_and_not_compared(tmp_path):
    for kind in ("M", "P"):
        mesh.write_sweep(tmp_path, f"1/1/1/1{kind}", judged=True)
        name = mesh.write_sweep(tmp_path, f"1/1/1/2{kind}", judged=True)
        if kind == "P":
            trials = read_table(tmp_path, "trials", name).assign(data_profile="large")
            write_table(tmp_path, "trials", name, trials)
    measured = read_campaign(tmp_path)
    assert sorted(len(cells) for cells in measured.maps.values()) == [1, 1, 2]
    assert any("data_profile" in w and "not compared" in w for w in measured.warnings)
    assert any("data_profile large" in c.label for c in measured.maps)
    (one,) = ratios(measured)
    assert list(one.pairs) == [(1, 1)]


PRICES = Prices({"normal": 1.0, "low_cost": 0.3}, "EUR", "test")


def thrice(cell: Cell) -> Cell:
    """The same with three trials of each load that agree, so that their own errors make the interval."""
    return replace(cell, loads=pd.concat([cell.loads] * 3, ignore_index=True))


def test_the_cheapest_is_measured_sure_and_within_the_objective(measured):
    mysql = [thrice(c) for c in cells(measured, "M").values()]
    # 1/1/1/2M reaches 625/s, but beyond 3,000 users not within a second
    for wanted, topology, price in ((400, "1/1/1/1M", 4.0), (560, "1/2/1/4M", 8.0)):
        rows = cheapest(mysql, PRICES, wanted, 1000)
        best = rows[rows["answer"] == "yes"].iloc[0]
        assert (best["topology"], best["price_per_hour"]) == (topology, price)
    for c in mysql:  # every answer is a measured load
        at = within(c, 1000)
        row = rows[rows["topology"] == str(c.topology)].iloc[0]
        assert row["throughput_per_s"] == at.rate.value
        assert (c.loads.loc[c.loads["users"] == at.users, "p95_ms"] <= 1000).all()
    assert set(cheapest(mysql, PRICES, 5000, 1000)["answer"]) == {"no"}
    assert within(mysql[0], 0.001) is None


def test_without_an_objective_the_answer_does_not_speak_of_one(measured):
    bare = replace(measured, maps={k: [replace(c, slo_ms=float("nan")) for c in v] for k, v in measured.maps.items()})
    (cells_,) = [v for k, v in bare.maps.items() if k.slug == "M.browse_only.shardingsphere.1-1"]
    bare = replace(bare, maps={cells_[0].map_key: cells_})
    asked = answer(bare, PRICES, 100, None)
    assert "objective" not in asked.text().splitlines()[0]
    assert f"no response-time objective is known of {cells_[0].sweep}" in asked.text()
    assert json.loads(asked.json())["response_times_checked"] is False
    given = answer(bare, PRICES, 100, 1000)
    assert "within p95 <= 1000 ms" in given.text().splitlines()[0]
    assert json.loads(given.json())["response_times_checked"] is True
    assert {r["within"] for r in _rows(bare, {c: groups(v) for c, v in bare.maps.items()}, PRICES, None)} == {
        "no objective"
    }


def test_a_load_that_is_sure_is_not_hidden_by_one_with_a_higher_mean(measured):
    loads = [(3000, 104.0, 102.0, 106.0, 500.0), (4000, 105.0, 85.0, 125.0, 500.0), (5000, 200.0, 199.0, 201.0, 5000.0)]
    cell = replace(measured.cells[0], loads=pd.DataFrame(loads, columns=list(measured.cells[0].loads)))
    for wanted, answer_, users in ((100, "yes", 3000), (103, "maybe", 4000), (110, "maybe", 4000), (130, "no", 4000)):
        (row,) = cheapest([thrice(cell)], PRICES, wanted, 1000).to_dict("records")
        assert (row["answer"], row["users"]) == (answer_, users), wanted
    narrow = replace(cell, loads=cell.loads.assign(low_per_s=[80, 104.5, 199], high_per_s=[115, 105.5, 201]))
    assert cheapest([thrice(narrow)], PRICES, 110, 1000)["answer"].tolist() == ["maybe"]  # the load of 3,000 users may


def test_one_of_many_loads_that_seems_to_carry_it_by_chance_is_not_sure(measured):
    """Eight loads beyond the knee, of which one lies above 100 with its own interval, and none with all together."""
    rows = [(3000 + 100 * n, 100.0, 97.0, 103.0, 500.0) for n in range(7)] + [(4000, 102.0, 98.9, 105.1, 500.0)]
    cell = replace(measured.cells[0], loads=pd.DataFrame(rows, columns=list(measured.cells[0].loads)))
    assert cheapest([thrice(cell)], PRICES, 100, 1000)["answer"].tolist() == ["maybe"]
    alone, others = (thrice(replace(cell, loads=part)) for part in (cell.loads.iloc[7:], cell.loads.iloc[:7]))
    assert cheapest([alone], PRICES, 100, 1000)["answer"].tolist() == ["yes"]
    both = cheapest([alone, replace(others, sweep="as cheap")], PRICES, 100, 1000)
    assert both["answer"].tolist() == ["maybe", "maybe"]  # as many loads could have seemed to


def test_few_repetitions_of_many_loads_are_less_sure_than_by_the_normal_law(measured):
    """Three trials of each of eight loads, 110 +- 2. All loads know what trials differ by (16 degrees of freedom): 110
    +- 3.6 for all of them together. By the first load alone (2 degrees of freedom) it would be +- 5.0 for itself."""
    rows = [(3000 + 100 * n, 110.0 + d, 109.5 + d, 110.5 + d, 500.0) for n in range(8) for d in (-2, 0, 2)]
    cell = replace(measured.cells[0], loads=pd.DataFrame(rows, columns=list(measured.cells[0].loads)))
    for wanted, answer_ in ((106, "yes"), (107, "maybe")):
        (row,) = cheapest([cell], PRICES, wanted, 1000).to_dict("records")
        assert (row["answer"], row["trials"]) == (answer_, 3)
    assert row["low_per_s"] == pytest.approx(110 - 2 / 3**0.5 * stats.t.isf(0.025 / 8, 16), abs=0.01)
    one = replace(cell, loads=cell.loads.iloc[:3])
    (row,) = cheapest([one], PRICES, 106, 1000).to_dict("records")
    assert (row["answer"], row["low_per_s"]) == ("maybe", pytest.approx(105.03, abs=0.01))


def test_a_load_of_one_trial_is_maybe_at_most(measured):
    (one,) = [v for k, v in measured.maps.items() if k.slug == "M.browse_only.shardingsphere.1-1"]
    asked = answer(replace(measured, maps={one[0].map_key: one}), PRICES, 100, 1000)
    assert (asked.rows["low_per_s"] > 100).any()
    assert set(asked.rows["answer"]) == {"maybe"}
    assert "only one trial at the load shown of 1/1/1/1M" in asked.text()
    assert asked.best is None


def test_what_is_not_known_of_a_load_is_no_no(measured):
    """One trial of which only the mean is known, just below what is wanted; and three without a percentile."""
    (one, *_) = (v for k, v in measured.maps.items() if k.slug == "M.browse_only.shardingsphere.1-1")
    columns = list(one[0].loads)
    bare = replace(one[0], loads=pd.DataFrame([(3000, 99.0, np.nan, np.nan, 500.0)], columns=columns))
    silent = replace(one[0], loads=pd.DataFrame([(3000, 110.0, 109.0, 111.0, np.nan)], columns=columns))
    for cell, told in ((bare, "no interval of the throughput"), (thrice(silent), "no 95th percentile")):
        asked = answer(replace(measured, maps={cell.map_key: [cell]}), PRICES, 100, 1000)
        assert asked.rows["answer"].tolist() == ["maybe"]
        assert f"note: {told}" in asked.text()
        assert within(silent, 1000) is None, "of the map: throughput within the objective"
    assert cheapest([thrice(silent)], PRICES, 120, 1000)["answer"].tolist() == ["no"]  # too little, however quick
    assert cheapest([thrice(silent)], PRICES, 100, None)["answer"].tolist() == ["maybe"]


def rows_of(measured: Campaign, loads: list[tuple], wanted: float, slo_ms: float | None = 1000) -> dict:
    cell = replace(measured.cells[0], loads=pd.DataFrame(loads, columns=list(measured.cells[0].loads)))
    (row,) = cheapest([cell], PRICES, wanted, slo_ms).to_dict("records")
    return row


def test_a_single_number_far_below_what_is_wanted_is_a_no(measured):
    """100/s without an interval were maybe 500. Single trials do not differ by as much."""
    alone = [(3000, 100.0, np.nan, np.nan, 500.0)]
    assert [rows_of(measured, alone, wanted)["answer"] for wanted in (110, 500)] == ["maybe", "no"]


def test_a_load_without_an_interval_does_not_hide_one_that_is_known_to_serve_more(measured):
    low, known = (1000, 100.0, np.nan, np.nan, 300.0), (3000, 110.0, 105.0, 115.0, 500.0)
    shown = rows_of(measured, [low, known], 130)
    assert (shown["answer"], shown["users"]) == ("no", 3000)
    shown = rows_of(measured, [(4000, 120.0, np.nan, np.nan, 600.0), known], 130)
    assert (shown["answer"], shown["users"]) == ("maybe", 4000), "one that serves more may carry it"


def test_a_load_above_one_that_missed_the_objective_misses_it_too(measured):
    """Its own percentile is unknown, but more users never wait less; fewer may."""

    def answered(missed: int, *others: tuple) -> str:
        loads = [(missed, 90.0, 89.0, 91.0, 3000.0), (4000, 110.0, 109.0, 111.0, np.nan), *others]
        return rows_of(measured, sorted(loads), 100)["answer"]

    assert answered(3000) == "no"
    assert answered(5000) == "maybe"
    cold = (2000, 60.0, 59.0, 61.0, 500.0)
    assert answered(1000, cold) == "maybe", "the lowest load was slow, and not for its users"


def test_sweeps_of_one_topology_are_called_by_their_names(measured):
    cells_ = [thrice(c) for c in cells(measured, "M").values()]
    first, other = cells_[0], replace(cells_[0], sweep=f"{cells_[0].sweep}.again")
    both = replace(measured, maps={first.map_key: [first, other, cells_[1]]})
    text = answer(both, PRICES, 400, 1000).text()
    lines = {line.split()[0] for line in text.splitlines()}
    assert {first.sweep, other.sweep, str(cells_[1].topology)} <= lines
    assert str(first.topology) not in lines


def changed(store: Path, name: str, **columns) -> None:
    write_table(store, "trials", name, read_table(store, "trials", name).assign(**columns))


def test_values_of_another_factor_are_no_repetitions_of_a_load(tmp_path):
    """All have 100 users: they would be eight trials of one load."""
    for topology in ("1/1/1/1M", "1/1/1/2M"):
        name = mesh.write_sweep(tmp_path, topology)
        sizes = read_table(tmp_path, "trials", name)["users"] / 1000
        by_size = {"factor": "size_kb", "factor_unit": "kB", "factor_value": sizes}
        changed(tmp_path, name, users=100, users_real=20, **by_size)
    found = read_campaign(tmp_path)
    assert [c.loads["users"].nunique() for c in found.cells] == [len(mesh.LOADS)] * 2
    assert {c.repetitions for c in found.cells} == {1}
    with pytest.raises(DataError, match="is over size_kb, not over users"):
        answer(found, PRICES, 100, None)
    assert overview(tmp_path)["users_within_slo"].isna().all()


MEDIAWIKI = implied.system(1.0).model_copy(update={"name": "mediawiki"}).model_dump_json()


@pytest.mark.parametrize(("column", "value"), [("data_profile", "large"), ("system", MEDIAWIKI), ("think_time_s", 1.0)])
def test_interactions_of_other_data_or_systems_are_not_set_beside_each_other(tmp_path, column, value):
    one, two = (mesh.write_sweep(tmp_path, t, judged=True) for t in ("1/1/1/1M", "1/1/1/2M"))
    changed(tmp_path, two, **{column: value})
    with pytest.raises(DataError, match=f"the sweeps differ in {column} .* name those to choose from"):
        answer(read_campaign(tmp_path), PRICES, 100, None)
    assert len(kinds(read_campaign(tmp_path).cells)) == 2
    other = mesh.write_sweep(tmp_path, "1/1/1/3M", judged=True)
    assert len(answer(read_campaign(tmp_path, [one, other]), PRICES, 100, None).rows) == 2


def test_a_sweep_of_another_notation_is_left_out_and_said(tmp_path):
    names = [mesh.write_sweep(tmp_path, t, judged=True) for t in ("1/1/1/1M", "1/1/1/2M", "1/1/1/3M")]
    changed(tmp_path, names[2], topology="1/1")
    found = read_campaign(tmp_path)
    assert {c.sweep for c in found.cells} == set(names[:2])
    assert any(w.startswith(f"{names[2]} is left out: topology '1/1'") for w in found.warnings)
    with pytest.raises(DataError, match="expected W/A/C/D with four numbers"):
        read_campaign(tmp_path, names)


def test_think_times_of_imports_that_differ_as_measured_means_do_are_on_one_map(tmp_path):
    for topology, think_s in (("1/1/1/1M", 5.01), ("1/1/1/2M", 4.98), ("1/1/1/4M", 8.0)):
        changed(tmp_path, mesh.write_sweep(tmp_path, topology, judged=True), target="imported", think_time_s=think_s)
    found = read_campaign(tmp_path)
    assert "think_time_s is 4.98 to 5.01, measured, and taken as one" in found.warnings
    assert any(w.endswith("not differences between deployments.") for w in found.warnings), "no variable of make"
    keys = {str(c.topology): c.map_key for c in found.cells}
    assert keys["1/1/1/1M"] == keys["1/1/1/2M"] != keys["1/1/1/4M"]


@pytest.mark.parametrize(("target", "again"), [("imported", ""), ("local", " (repeat with REPS=3)")])
def test_who_measured_elsewhere_has_no_variables_of_make(tmp_path, target, again):
    for topology in ("1/1/1/1M", "1/1/1/2M"):
        changed(tmp_path, mesh.write_sweep(tmp_path, topology, judged=True), target=target)
    asked = answer(read_campaign(tmp_path), PRICES, 100, 1000)
    assert any(w.endswith(f"differ by, so the answer is maybe{again}") for w in asked.warnings), asked.warnings
    assert any(w.endswith(f"not differences between deployments{again}.") for w in asked.warnings)


def test_one_sweep_that_is_named_is_no_choice(tmp_path):
    names = [mesh.write_sweep(tmp_path, topology, judged=True) for topology in ("1/1/1/1M", "1/1/1/2M")]
    with pytest.raises(DataError, match="1 sweep of those named; to set topologies beside each other takes two"):
        read_campaign(tmp_path, names[:1])


def test_a_ratio_of_two_dbms_is_not_one_of_two_policies(tmp_path):
    for kind in ("M", "P"):
        name = mesh.write_sweep(tmp_path, f"1/1/1/2{kind}", judged=True)
        changed(tmp_path, name, policy="random" if kind == "M" else "least")
    assert ratios(read_campaign(tmp_path)) == []
    for kind in ("M", "P"):
        changed(tmp_path, f"1-1-1-2{kind}.browse_only.shardingsphere", policy="random")
    assert [r.aspect for r in ratios(read_campaign(tmp_path))] == ["dbms"]


def test_answers_across_mixes_or_with_nonsense_are_refused(measured):
    with pytest.raises(DataError, match="--throughput is -1"):
        answer(measured, PRICES, -1, None)
    other = replace(measured.cells[0], map_key=replace(measured.cells[0].map_key, mix="read_write"))
    with pytest.raises(DataError, match="different mixes"):
        answer(campaign([measured.cells[1], other]), PRICES, 100, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "expected JSON"), ('{"per_hour": {"normal": -1}}', "'normal' is -1"), ('{"per_hour": 3}', "expected JSON")],
)
def test_prices_that_are_wrong_are_named(tmp_path, text, words):
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_prices(path)


def test_a_node_type_without_a_price_is_named(measured):
    with pytest.raises(DataError, match="none for node type 'normal'"):
        Prices({"huge": 1.0}, "EUR", "test").of(measured.cells[0])


def test_what_is_rented_has_its_prices_in_its_own_file():
    prices = read_prices(Path(__file__).resolve().parents[3] / "terraform/targets/hcloud/machines.json")
    assert set(prices.per_hour) == {"normal", "low_cost", "client"}
    assert prices.currency == "EUR"
    assert "2026" in prices.source


def test_the_example_prices_say_that_they_are_one():
    assert read_prices().source.startswith("example")


def test_fewer_than_two_sweeps_and_unknown_names(store, tmp_path):
    with pytest.raises(DataError, match="no sweep with mix 'x'"):
        read_campaign(store, mix="x")
    with pytest.raises(DataError, match="no sweep 'nosuch'"):
        read_campaign(store, ["nosuch"])
    mesh.write_sweep(tmp_path, "1/1/1/1M", loads=(1000, 2000), judged=True)
    with pytest.raises(DataError, match="1 sweep; to set topologies beside each other takes two or more"):
        read_campaign(tmp_path)


def test_commands(tmp_path):
    for topology in ("1/1/1/1M", "1/2/1/4M"):
        mesh.write_sweep(tmp_path, topology, reps=3, judged=True)
    command = ["cheapest", "--store", str(tmp_path), "--slo-ms", "1000", "--json", "--throughput"]
    done = CliRunner().invoke(app, [*command, "560"])
    assert done.exit_code == 0
    assert json.loads(done.output)["best"]["topology"] == "1/2/1/4M"
    assert CliRunner().invoke(app, [*command, "5000"]).exit_code == 3
