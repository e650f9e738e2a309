"""Figures of data that are not as usual: no interval, all loads beyond the knee, a slow system, pools without a size,
invalid repetitions, another factor than users, names that no file system takes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.described import LoadAxis
from ntier_analysis.figures import course, densities, interactions, loads, percentiles, timeline
from ntier_analysis.figures.drawing import LONGEST_STEM, Drawing
from ntier_analysis.figures.load_axis import over
from ntier_analysis.figures.style import tier_look
from ntier_analysis.report import interactive

from .test_figures import samples, trials

KNEE = 4000.0


def plateau(low=56.0, high=58.0, knee=KNEE, value=57.0):
    return loads.Plateau(value, low, high, knee, at_least=True)


def test_a_maximum_without_an_interval_has_neither_ends_nor_band():
    drawing = loads.throughput(trials(), plateau(None, None))
    assert drawing.finding == (
        "Throughput follows N/(Z+R) at first, and its maximum is no less than 57.0 interactions/s."
    ), "two loads beyond the knee do not show that it levels off"
    assert "grey band" not in drawing.caption
    shapes = interactive.throughput(trials(), plateau(None, None))["layout"]["shapes"]
    assert [shape["type"] for shape in shapes] == ["line"]
    known = loads.throughput(trials(), plateau())
    assert "57.0 [56.0, 58.0]" in known.finding
    assert "grey band" in known.caption


def test_loads_that_all_lie_beyond_the_knee_show_no_growth():
    beyond = trials()[trials()["users"] >= KNEE]
    drawing = loads.throughput(beyond, plateau())
    assert (
        drawing.finding == "All loads lie beyond the knee: throughput is no less than 57.0 [56.0, 58.0] interactions/s."
    )
    assert "dashed" not in drawing.caption
    names = [trace["name"] for trace in interactive.throughput(beyond, plateau())["data"]]
    assert "N / (Z + R)" not in names
    assert "dashed" in loads.throughput(trials(), plateau()).caption


def test_intervals_that_were_not_known_are_not_promised():
    bare = trials().assign(throughput_low_per_s=np.nan, throughput_high_per_s=np.nan)
    assert "95 %" not in loads.throughput(bare, None).caption
    assert "with 95 % intervals" in loads.throughput(trials(), None).caption


def test_a_slow_system_keeps_its_digits():
    slow = trials().assign(throughput_per_s=trials()["throughput_per_s"] / 2000)
    assert "0.029 [0.028, 0.029] interactions/s" in loads.throughput(slow, plateau(0.028, 0.029, value=0.0285)).finding


@pytest.mark.parametrize(("model", "said"), [("closed", True), ("open", False)])
def test_only_a_closed_loop_is_called_one(model, said):
    assert ("closed loop" in loads.response_time(trials().assign(load_model=model)).caption) == said


def test_the_response_time_of_a_load_is_the_mean_of_its_repetitions():
    again = trials().assign(trial="again", rep=2, response_time_mean_ms=lambda t: t["response_time_mean_ms"] + 100)
    finding = loads.response_time(pd.concat([trials(), again], ignore_index=True)).finding
    assert finding == "The mean response time is 100 ms at 1,000 users and 3,550 ms at 6,000 users."
    unknown = trials().assign(response_time_mean_ms=np.nan)
    assert loads.response_time(unknown).finding == "The mean response time is not known."


def pool(saturation, users=1000):
    row = {"users": users, "trial": f"u{users}", "valid": True, "node": "app1", "tier": "app", "item": "threads"}
    return row | {"saturation": saturation, "utilization_mean_pct": np.nan if np.isnan(saturation) else 80.0, "n": 40}


def test_a_pool_of_unknown_size_is_not_the_fullest():
    some = loads.pools(pd.DataFrame([pool(0.7), pool(np.nan, 2000)]), 1.0)
    assert "full in 70 % of the run at 1,000 users (80 % of its places" in some.finding
    none = loads.pools(pd.DataFrame([pool(np.nan)]), 1.0)
    assert "nan" not in none.finding


def test_invalid_repetitions_are_not_in_the_density_of_a_load_that_has_a_valid_one():
    frame = samples()
    bad = frame[frame["users"] == 1000].assign(trial="u01000.r02", value=100.0)
    shares = pd.DataFrame({"trial": [*frame["trial"].unique(), "u01000.r02"]})
    shares = shares.assign(users=shares["trial"].str[1:6].astype(int), valid=shares["trial"] != "u01000.r02")
    both = pd.concat([frame, bad])
    assert densities.without_invalid(both, shares).equals(frame)
    alone = shares.assign(valid=shares["users"] != 1000)
    assert len(densities.without_invalid(both, alone)) == len(both), "a load without a valid trial is shown, and marked"


def test_values_of_a_factor_are_not_called_users():
    of_factor = trials().assign(users=trials()["users"] / 10000)
    with over(LoadAxis("sleep_s", "s")):
        traces = interactive.throughput(of_factor, None)["data"]
    hovers = " ".join(t.get("hovertemplate", "") for t in traces)
    assert "sleep_s %{x} s" in hovers
    assert "users" not in hovers
    usual = " ".join(t.get("hovertemplate", "") for t in interactive.throughput(trials(), None)["data"])
    assert "%{x:,} users" in usual


@pytest.mark.parametrize("name", ["course-../../u1-db/1", "percentiles-" + "n" * 300, "a b:c"])
def test_any_name_becomes_one_that_a_file_can_have(name, tmp_path):
    drawing = Drawing(name, Figure(), "", "", pd.DataFrame())
    (tmp_path / f"{drawing.name}.svg").write_text("")
    assert (tmp_path / f"{drawing.name}.svg").parent == tmp_path
    assert len(drawing.name) <= LONGEST_STEM


def test_long_names_that_begin_alike_stay_two():
    names = {Drawing("n" * 300 + end, Figure(), "", "", pd.DataFrame()).name for end in ("a", "b")}
    assert len(names) == 2


@pytest.mark.parametrize(("step_s", "told"), [(1.0, "60 of 120 seconds"), (10.0, "6 of 12 samples")])
def test_samples_of_ten_seconds_are_not_called_seconds(step_s, told):
    t = np.arange(step_s, 120.5, step_s)
    disk = next(m for m in course.MEASURES if m.name == "disk")
    series = {"db1": [course.Series(disk, t, np.where(t <= 60, 100.0, 20.0), "import")]}
    said = course._finding(series, [("db1", "db")], 0.0, (0.0, 120.0))
    assert f"In the {told} in which the disk of db1 is full" in said


def test_the_closed_model_has_its_band_on_the_page_too():
    curve = pd.DataFrame({"users": [0.0, 6000.0], "throughput_per_s": [0.0, 57.0]})
    curve = curve.assign(low_per_s=0.0, high_per_s=60.0)
    traces = interactive.throughput(trials(), None, SimpleNamespace(curve=curve))["data"]
    (fill,) = [t for t in traces if t.get("fill") == "tonexty"]
    assert fill["y"] == [60.0, 60.0]
    assert traces[traces.index(fill) - 1]["y"] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["/a/${id}/b/${id}", "$_$", "price in $"])
def test_names_of_the_data_are_no_formulas(name):
    times = 1000 + np.linspace(0, 39, 400)
    done = pd.DataFrame({"trial": "u01000.r01", "t_s": times, "phase": "run", "interaction": name, "ok": True})
    done = done.assign(response_time_ms=np.linspace(1, 99, 400))
    rows = trials(invalid=(1000,)).assign(invalid_reasons=name)
    trial = next(rows.itertuples())
    pools = pd.DataFrame([pool(0.7), pool(0.9, 2000)]).assign(item=name)
    drawn = [percentiles.percentiles(done, trial), interactions.long_interactions(done, "u01000.r01", 1000)]
    drawn += [loads.pools(pools, 1.0), timeline.timeline(done, rows.iloc[:1])]
    for drawing in drawn:
        drawing.figure.draw_without_rendering()
        texts = [text for text in drawing.figure.findobj(Text) if name in text.get_text()]
        assert texts
        assert not any(text.get_parse_math() for text in texts)


def test_interactive_figures_mark_invalid_trials_as_the_static_ones_do():
    rows = pd.DataFrame([pool(0.7), pool(0.9, 2000) | {"valid": False}])
    rows = rows.assign(saturation_low=0.6, saturation_high=1.0, n_effective=40)
    for plot, axes in ((interactive.utilization(rows), 2), (interactive.pools(rows), 1)):
        marks = [trace for trace in plot["data"] if trace["name"] == "INVALID trial"]
        assert [trace["x"] for trace in marks] == [[2000.0]] * axes
        assert all(trace["text"][0].startswith("app1") for trace in marks)
    done = pd.DataFrame({"trial": ["u01000.r01", "u02000.r01"], "t_s": 1001.5, "ok": True})
    lines = interactive.timeline(timeline.timeline(done, trials(invalid=(2000,)).iloc[:2]).data)["data"]
    assert [line["name"] for line in lines] == ["1,000 users (5-s mean)", "2,000 users (5-s mean), INVALID"]
    assert lines[1]["line"]["color"] != lines[0]["line"]["color"]


def test_of_many_pools_the_fullest_are_drawn_and_the_others_are_named():
    rows = [pool(0.04 * i, users) | {"item": f"pool{i:02d}"} for i in range(12) for users in (1000, 2000)]
    drawing = loads.pools(pd.DataFrame([r | {"valid": r["users"] == 1000} for r in rows]), 1.0)
    (legend,) = drawing.figure.legends
    fullest = [f"app1 pool{i:02d}" for i in range(2, 12)]
    assert [t.get_text() for t in legend.get_texts()] == [*fullest, "INVALID trial"]
    lines = {line.get_label(): line for line in drawing.figure.axes[0].lines}
    assert len({(lines[n].get_linestyle(), lines[n].get_fillstyle(), lines[n].get_marker()) for n in fullest}) == 10
    assert len(lines["INVALID trial"].get_xdata()) == 10
    assert "only the 10 fullest pools have a line, not app1 pool01 and app1 pool00." in drawing.caption
    assert drawing.data["item"].nunique() == 12
    assert "fullest" not in loads.pools(pd.DataFrame(rows[:4]), 1.0).caption


def test_pools_that_are_equally_full_have_one_line_with_all_their_names():
    """Most are never full, and the others full at the same loads: the last one drawn hid the rest."""
    shares = {"web1 workers": (0, 0), "app1 queue": (0, 0.004), "app1 threads": (0, 1), "app2 threads": (0, 1),
              "db1 threads": (0, 0.9)}  # fmt: skip
    rows = [pool(share, users) | dict(zip(("node", "item"), name.split(), strict=True)) | {"tier": name.split()[0][:-1]}
            for name, both in shares.items() for share, users in zip(both, (1000, 2000), strict=True)]  # fmt: skip
    drawing = loads.pools(pd.DataFrame(rows), 1.0)
    drawn = {" ".join(line.get_label().split()): list(line.get_ydata()) for line in drawing.figure.axes[0].lines}
    assert drawn == {
        "web1 workers and app1 queue": [0, 0],
        "app1 threads and app2 threads": [0, 100],
        "db1 threads": [0, 90],
    }
    assert "full equally often at each load, to 1 %, have one line" in drawing.caption
    assert drawing.data["item"].nunique() == 3


@pytest.mark.parametrize(("model", "who"), [("closed", "users"), ("work", "workers")])
def test_workers_are_not_called_users(model, who):
    with over(LoadAxis(who=LoadModel(model).who)):
        drawing = loads.response_time(trials())
        traces = interactive.throughput(trials(), None)["data"]
    assert drawing.figure.axes[0].get_xlabel() == f"{who} (nominal)"
    assert drawing.finding.endswith(f"at 1,000 {who} and 3,500 ms at 6,000 {who}.")
    assert any(f"%{{x:,}} {who}" in t.get("hovertemplate", "") for t in traces)


def test_trials_that_were_sampled_less_finely_than_others_stay_in_the_density():
    fine = pd.DataFrame({"trial": "a", "users": 1, "t_s": np.arange(1, 201) / 10, "value": 10.0})
    coarse = pd.DataFrame({"trial": "b", "users": 2, "t_s": np.arange(1.0, 21.0), "value": 90.0})
    for parts in ([fine, fine.assign(trial="c", users=3), coarse], [fine, coarse, coarse.assign(trial="c", users=3)]):
        curves = densities.node_densities(densities.averaged(pd.concat(parts, ignore_index=True), 1.0))
        assert curves["users"].tolist() == [1, 2, 3]
        assert curves["n"].tolist() == [20, 20, 20]


def test_a_share_that_no_valid_trial_tells_is_called_unknown():
    share = {"saturation": np.nan, "saturation_low": 0.0, "saturation_high": 1.0, "n_effective": 0.0}
    row = {"users": 1000, "trial": "u1", "valid": True, "node": "db1", "tier": "db", "utilization_mean_pct": np.nan}
    nothing = pd.DataFrame([row | share | {"n": 0}])
    assert densities._finding(nothing, "db1", "cpu", "") == "How often the CPU of db1 is at or above 95 % is not known."
    assert loads._utilization_finding(nothing) == "How saturated the CPUs were was not measured in a valid trial."
    known = pd.concat([nothing, nothing.assign(users=2000, saturation=0.7, n=40)], ignore_index=True)
    unsure = "was at or above 95 % for a share of at most 0.70 [0.00, 1.00] of the run phase, at 2,000 users."
    assert densities._finding(known, "db1", "cpu", "").endswith(unsure), "0.70 of nearly nothing is not half"
    sure = densities._finding(known.assign(saturation_low=0.6), "db1", "cpu", "")
    assert "for more than half of the run phase at 2,000 users" in sure
    assert loads._utilization_finding(known) == (
        "At 2,000 users the highest saturation is that of db1, 0.70 [0.00, 1.00]."
    )


@pytest.mark.parametrize(
    ("low", "said"),
    [(0.6, "0.70 [0.60, 1.00]; 1 other node may have as much."), (0.69, "0.70 [0.69, 1.00]; the next, app1, has 0.50 "
     "[0.40, 0.65].")],
)  # fmt: skip
def test_a_node_is_the_most_saturated_one_only_beyond_the_intervals(low, said):
    row = {
        "users": 1000,
        "valid": True,
        "node": "db1",
        "saturation": 0.7,
        "saturation_low": low,
        "saturation_high": 1.0,
    }
    other = {"node": "app1", "saturation": 0.5, "saturation_low": 0.4, "saturation_high": 0.65}
    finding = loads._utilization_finding(pd.DataFrame([row, row | other]))
    assert finding == f"At 1,000 users the highest saturation is that of db1, {said}"
    idle = loads._utilization_finding(pd.DataFrame([row | {"saturation": 0.0, "saturation_low": 0.0}]))
    assert idle == "At 1,000 users no CPU was seen at 95 % or above."


def test_of_nodes_that_lie_on_one_another_each_is_seen():
    """Those without work, at 0."""
    nodes = {"web1": "web", "app1": "app", "middleware1": "middleware", "db1": "db", "client1": "client"}
    rows = [pool(0.0, users) | {"node": n, "tier": t, "item": ""} for n, t in nodes.items() for users in (1000, 2000)]
    rows = pd.DataFrame(rows).assign(saturation_low=0.0, saturation_high=0.05, n_effective=40)
    drawing = loads.utilization(rows, 1.0)
    canvas = FigureCanvasAgg(drawing.figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    for axes in drawing.figure.axes:
        box = axes.get_window_extent()
        inside = pixels[len(pixels) - int(box.y1) : len(pixels) - int(box.y0) + 8, int(box.x0) : int(box.x1)]
        for node, tier in nodes.items():
            color = 255 * np.array(to_rgb(tier_look(tier).color))
            seen = (np.abs(inside - color).max(axis=-1) < 40).sum()
            assert seen >= 8, (node, int(seen))
