"""Properties of the figures that go deeper: courses, events, percentiles, tiers, load against throughput."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.described import axis_of
from ntier_analysis.figures import course, densities, events, loads, percentiles, sequence, tiers, timeline
from ntier_analysis.figures.drawing import Origin, svg
from ntier_analysis.figures.load_axis import over
from ntier_analysis.statistics.in_progress import windows

ORIGIN = Origin("1-1-1-1M.browse_only.x", "1/1/1/1M", ("u04000.r01",), 0.1, "abc123", "make sweep TOPO=1/1/1/1M")
START_S = 1000.0
RUN_S = 60


def trial(**changes):
    row = {
        "trial": "u04000.r01", "users": 4000, "users_real": 400, "valid": True, "invalid_reasons": "", "scale": 0.1,
        "run_start_s": START_S, "run_end_s": START_S + RUN_S, "ramp_up_start_s": START_S - 20,
        "ramp_down_end_s": START_S + RUN_S + 5, "throughput_per_s": 50.0, "interactions": 3000, "errors": 0,
        "response_time_mean_ms": 200.0,
    }  # fmt: skip
    return SimpleNamespace(**(row | changes))


def trials() -> pd.DataFrame:
    return pd.DataFrame([vars(trial())])


def series(node, resource, metric, values, *, tier="db", source="x", item="", t_s=None) -> pd.DataFrame:
    t = START_S + 1 + np.arange(len(values)) if t_s is None else np.asarray(t_s)
    frame = pd.DataFrame({"t_s": t, "value": np.asarray(values, dtype=float)})
    keys = {"node": node, "tier": tier, "resource": resource, "metric": metric, "source": source, "item": item}
    return frame.assign(trial="u04000.r01", phase="run", **keys)


FULL = (np.arange(RUN_S) >= 20) & (np.arange(RUN_S) < 30)


def samples() -> pd.DataFrame:
    """A database whose disk is full for ten seconds, in which its CPU idles and more statements run."""
    tenths = START_S + 0.1 * np.arange(1, 10 * RUN_S + 1)
    return pd.concat(
        [
            series("db1", "disk", "utilization_pct", np.where(FULL, 100.0, 10.0), source="cgroup"),
            series("db1", "cpu", "utilization_pct", np.repeat(np.where(FULL, 20.0, 80.0), 10), t_s=tenths),
            series("db1", "queue", "threads_running", np.where(FULL, 12.0, 2.0)),
            series("db1", "query", "questions_per_s", np.where(FULL, 5.0, 100.0)),
            series("app1", "jvm", "gc_pct", np.where(np.arange(RUN_S) % 20 == 7, 30.0, 0.0), tier="app"),
        ],
        ignore_index=True,
    )


def axis_labels(figure) -> list[str]:
    """On one line each."""
    texts = (text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel()) if text)
    return [text.replace("\n", " ") for text in texts]


# ---- courses -------------------------------------------------------------------------------------------------------


def test_a_gap_breaks_the_line():
    t = np.r_[np.arange(10.0), np.arange(20.0, 30.0)]
    times, values = course.with_gaps(t, np.ones(20))
    assert np.isnan(values).sum() == 1
    assert 9 < times[np.isnan(values)][0] < 20
    assert len(values[np.isfinite(values)]) == 20


def test_a_course_is_never_drawn_over_missing_samples():
    frame = samples()
    lost = (frame["metric"] == "threads_running") & frame["t_s"].between(START_S + 41, START_S + 50)
    drawing = course.course(frame[~lost], trial(), [("db1", "db")])
    running = next(a for a in drawing.figure.axes if a.get_ylabel() == "running\n[count]")
    line = running.lines[0]
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    inside = (x > 41) & (x < 50)
    assert inside.any()
    assert np.isnan(y[inside]).all()


def test_seconds_that_lack_samples_have_no_mean():
    t = np.r_[0.1 * np.arange(1, 21), 2.1, 2.2]
    at, means = course.second_means(t, np.ones(22))
    assert list(at) == [0.5, 1.5, 2.5]
    assert list(means[:2]) == [1.0, 1.0]
    assert np.isnan(means[2])


def test_statements_of_several_middlewares_are_added_and_a_lost_second_is_a_gap():
    told = [
        series(f"middleware{i}", "query", "statements_per_s", [10.0 * i] * 5, tier="middleware", item="db1")
        for i in (1, 2)
    ]
    told[1] = told[1].drop(told[1].index[2])
    by_measure = {s.measure.name: s for s in course.of_node(pd.concat(told, ignore_index=True), "db1")}
    values = by_measure["executed"].value
    assert list(values[[0, 1, 3, 4]]) == [30.0] * 4
    assert np.isnan(values[2])


def test_panels_share_the_seconds_of_the_run_and_name_their_units():
    drawing = course.course(samples(), trial(), [("db1", "db")], (10.0, 40.0))
    labels = {"disk [%]", "CPU [%]", "running [count]", "executed [1/s]", "seconds of the run phase"}
    assert labels <= set(axis_labels(drawing.figure))
    assert {axes.get_xlim() for axes in drawing.figure.axes} == {(10.0, 40.0)}
    assert drawing.data["t_s"].between(10, 40).all()
    assert svg(drawing, ORIGIN)


def test_the_finding_of_a_course_compares_seconds_with_a_full_disk_with_the_others():
    finding = course.course(samples(), trial(), [("db1", "db")]).finding
    assert finding.startswith("In the 10 of 60 seconds in which the disk of db1 is full: CPU 20.0 % instead of 80.0 %")
    assert "running 12.0 instead of 2.0" in finding


def test_what_a_node_does_not_measure_is_said():
    both = pd.concat([samples(), series("app1", "cpu", "utilization_pct", np.full(RUN_S, 30.0), tier="app")])
    drawing = course.course(both, trial(), [("db1", "db"), ("app1", "app")])
    texts = [t.get_text() for axes in drawing.figure.axes for t in axes.texts]
    assert texts.count("not measured") == 3  # disk, running and executed of app1


def test_a_long_run_shows_the_stretch_in_which_the_disk_is_used_most():
    busy = np.zeros(600)
    busy[400:500] = 100.0
    by_node = {"db1": course.of_node(series("db1", "disk", "utilization_pct", busy, source="cgroup"), "db1")}
    begin, end = course.stretch_of(by_node, (START_S, START_S + 600))
    assert end - begin == course.STRETCH_S
    assert begin <= 400
    assert end >= 500


# ---- events --------------------------------------------------------------------------------------------------------


def interactions(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    names = rng.choice(["ViewStory", "Browse", "Search"], n, p=[0.6, 0.39, 0.01])
    frame = pd.DataFrame({"trial": "u04000.r01", "t_s": START_S + np.sort(rng.uniform(0, RUN_S, n))})
    return frame.assign(interaction=names, response_time_ms=rng.exponential(100.0, n), ok=True, phase="run")


def test_events_are_marked_where_they_were_and_zeros_are_none():
    marked = events.events(samples())
    assert set(marked["what"]) == {"garbage collection"}
    assert list(marked["t_s"] - START_S) == [8, 28, 48]
    drawing = timeline.timeline(interactions(), trials(), marked)
    lanes = drawing.figure.axes[1]
    marks = [segment[0][0] for collection in lanes.collections for segment in collection.get_segments()]
    assert marks == pytest.approx([8, 28, 48])
    assert [t.get_text() for t in lanes.get_yticklabels()] == ["app1 garbage collection"]
    assert "30 % of a second" in drawing.caption


def test_a_timeline_without_events_has_no_lanes():
    assert len(timeline.timeline(interactions(), trials(), events.events(samples().head(0))).figure.axes) == 1


def test_segments_that_were_repeated_without_need_are_no_events_where_lost_ones_are_counted():
    needless = [series(node, "network", "tcp_retransmits_per_s", [2.0, 2.0]) for node in ("db1", "db2")]
    counted = series("db1", "network", "tcp_lost_per_s", [0.0, 1.0])
    marked = events.events(pd.concat([*needless, counted], ignore_index=True))
    assert marked[["node", "what", "value"]].values.tolist() == [
        ["db1", "lost segments", 1.0], ["db2", "retransmits", 2.0], ["db2", "retransmits", 2.0],
    ]  # fmt: skip


def test_lanes_that_find_no_room_are_counted_in_the_caption():
    many = [series(f"db{i}", "network", "tcp_retransmits_per_s", [1.0] * (i + 1)) for i in range(events.MOST_LANES + 2)]
    drawing = timeline.timeline(interactions(), trials(), events.events(pd.concat(many, ignore_index=True)))
    assert "2 more kinds of events" in drawing.caption


def test_the_most_used_disk_is_not_the_one_that_reads_most_bytes():
    """A busy disk with small requests, an idle one that reads a large file."""
    told = [
        series(node, "disk", metric, [value] * 20)
        for node, used, read in (("db1", 90.0, 1e6), ("db2", 10.0, 5e6))
        for metric, value in (("utilization_pct", used), ("read_bytes_per_s", read))
    ]
    disks = pd.concat([*told, series("db3", "query", "questions_per_s", [1.0])], ignore_index=True)
    assert [name for name, _ in course.telling_nodes(disks, ["db3"])] == ["db1", "db3"]
    unknown = disks[disks["metric"] != "utilization_pct"]
    assert [name for name, _ in course.telling_nodes(unknown, ["db3"])] == ["db2", "db3"]


# ---- percentiles ---------------------------------------------------------------------------------------------------


def test_percentiles_of_interactions_are_numpys_and_small_numbers_are_said():
    done = interactions()
    drawing = percentiles.percentiles(done, trial())
    table = drawing.data.set_index(["interaction", "percentile"])
    story = done.loc[done["interaction"] == "ViewStory", "response_time_ms"]
    for label, share in percentiles.SHARES.items():
        assert table.loc[("ViewStory", label), "value_ms"] == np.percentile(story, 100 * share)
    texts = [t.get_text() for t in drawing.figure.axes[0].texts]
    assert any("too small for p90, p95, p99" in t for t in texts)
    assert "response time [ms]" in axis_labels(drawing.figure)
    assert svg(drawing, ORIGIN)


def test_a_trial_with_few_responses_of_each_kind_has_no_percentile_and_no_axis():
    """A slow system: 30 interactions of 7 kinds in a run. A logarithmic axis of nothing ended the whole report."""
    done = interactions().groupby("interaction").head(5)
    drawing = percentiles.percentiles(done, trial())
    assert drawing.data["value_ms"].isna().all()
    assert drawing.figure.axes[0].get_xticks().size == 0
    assert "no kind has that many" in drawing.finding
    assert svg(drawing, ORIGIN)


def test_of_thousands_of_names_those_that_take_most_time_are_drawn():
    """Names that carry numbers: a page of a million rows would be a picture of gigabytes."""
    t = START_S + np.linspace(0, RUN_S, 5000, endpoint=False)
    names = [f"GET /items/{n}" for n in range(5000)]
    done = pd.DataFrame({"t_s": t, "interaction": names, "response_time_ms": np.arange(1.0, 5001.0), "ok": True})
    drawing = percentiles.percentiles(done, trial())
    assert drawing.figure.get_size_inches()[1] < 20
    drawn = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert set(drawn) == set(names[-percentiles.MOST :])
    assert "4,960 others are left out" in drawing.caption
    assert drawing.data["interaction"].nunique() == 5000


def test_failures_and_other_phases_enter_no_percentile():
    done = interactions()
    spoiled = pd.concat(
        [done, done.assign(response_time_ms=1e6, ok=False), done.assign(response_time_ms=1e6, t_s=done["t_s"] + RUN_S)]
    )
    pd.testing.assert_frame_equal(
        percentiles.by_interaction(spoiled, START_S, START_S + RUN_S),
        percentiles.by_interaction(done, START_S, START_S + RUN_S),
    )


def test_the_response_time_figure_shows_intervals_and_hides_no_line_under_its_legend():
    rows = trials().assign(
        slo_ms=np.nan, rep=1, goodput_per_s=50.0, throughput_low_per_s=49.0, throughput_high_per_s=51.0,
        response_time_p50_ms=70.0, response_time_p95_ms=300.0, response_time_p99_ms=460.0,
    )  # fmt: skip
    drawing = loads.response_time(rows, percentiles.of_trials(interactions(), rows))
    assert "95 % intervals of p95 and p99" in drawing.caption
    assert len(drawing.figure.axes[0].collections) == 2
    assert drawing.figure.axes[0].get_legend() is None  # it stands outside of the axes
    assert len(drawing.figure.legends) == 1
    drawing.figure.draw_without_rendering()
    ticks = [t.get_text() for minor in (False, True) for t in drawing.figure.axes[0].get_yticklabels(minor=minor)]
    assert {"100", "200"} <= set(ticks), "plain numbers, also between two powers of ten"


# ---- tiers ---------------------------------------------------------------------------------------------------------


def in_use(web: bool = True, statements: bool = True) -> pd.DataFrame:
    """Readings that stand for 180 ms in web, 160 in app (20 of them waiting), 100 on a connection, 60 in the db."""
    rows = [
        series("app1", "pool", "active", [8.0] * RUN_S, tier="app", item="threads"),
        series("app1", "pool", "active", [5.0] * RUN_S, tier="app", item="connections"),
        series("app1", "pool", "waiting", [1.0] * RUN_S, tier="app", item="connections"),
    ]
    if web:
        rows.append(series("web1", "pool", "active", [9.0] * RUN_S, tier="web", item="workers"))
    if statements:
        key = {"tier": "middleware", "item": "db1"}
        rows.append(series("middleware1", "pool", "pending", [3.0] * RUN_S, **key))
        rows.append(series("middleware1", "query", "statements_per_s", [99.0] * RUN_S, **key))
    return pd.concat(rows, ignore_index=True)


ORDER = ("web", "app", "middleware", "db")


def parts_ms(levels: pd.DataFrame, order: tuple[str, ...] = ORDER) -> dict[str, float]:
    return tiers.segments(levels, order).set_index("segment")["ms"].to_dict()


def test_the_tiers_add_up_to_the_response_time():
    found = parts_ms(tiers.levels(trial(), in_use(), None, ORDER))
    expected = {
        "before web": 20,
        "web": 20,
        "app": 40,
        "waiting for a connection": 20,
        "middleware": 40,
        "db": 60,
    }
    assert found == pytest.approx(expected)


def test_the_tiers_are_those_of_the_system():
    """Three tiers with other names: pages ask services, which have a pool of connections to a store."""
    order = ("page", "service", "store")
    readings = in_use(statements=False).replace({"tier": {"web": "page", "app": "service"}})
    levels = tiers.levels(trial(), readings, None, order)
    expected = {"before page": 20, "page": 20, "service": 40, "waiting for a connection": 20, "store": 100}
    assert parts_ms(levels, order) == pytest.approx(expected)
    named = trials().assign(tiers=",".join(order))
    with over(axis_of(named)):
        drawing = tiers.per_tier(levels, named)
    assert [t.get_text() for t in drawing.figure.legends[0].get_texts()] == list(expected)
    assert "service by threads in use and store by connections in use; scale 0.1. " in drawing.caption
    assert "store: a connection to it is held, which includes what service does meanwhile" in drawing.caption
    faces = {bar.get_facecolor() for bar in drawing.figure.axes[0].patches}
    assert len(faces) == len(expected)


def test_connections_that_a_tier_accepts_are_not_those_that_it_opens():
    """Nobody waits there: what is behind is not told apart."""
    readings = in_use(statements=False)
    readings = readings[~((readings["item"] == "connections") & (readings["metric"] == "waiting"))]
    found = parts_ms(tiers.levels(trial(), readings, None, ORDER))
    assert found == pytest.approx({"before web": 20, "web": 20, "app": 160})


def test_the_web_servers_log_goes_before_readings_of_its_workers():
    levels = tiers.levels(trial(), in_use(), 170.0, ORDER)
    assert levels.set_index("level")["source"]["web"] == "its access log"
    assert parts_ms(levels)["before web"] == pytest.approx(30.0)


def test_what_is_not_measured_apart_is_said():
    levels = tiers.levels(trial(), in_use(statements=False).query("tier == 'web'"), 180.0, ORDER)
    drawing = tiers.per_tier(levels, trials())
    legend = [t.get_text() for t in drawing.figure.legends[0].get_texts()]
    assert any("not separated" in text for text in legend)
    assert "were not measured separately" in drawing.caption
    assert {"mean time per interaction [ms]", "share of the response time [%]"} <= set(axis_labels(drawing.figure))


# ---- load against throughput ---------------------------------------------------------------------------------------


def test_load_against_throughput_names_its_source_and_window():
    rng = np.random.default_rng(2)
    load = rng.uniform(0, 40, 600)
    frame = pd.DataFrame(
        {"trial": "u04000.r01", "users": rng.choice([2000, 4000], 600), "load": load, "rate": 5 * np.minimum(load, 10)}
    )
    sources = [
        sequence.Source("whole system", "all", "interactions by the client's log", 0.1, frame),
        sequence.Source("db1", "db", "readings of each second", 1.0, frame.head(60)),
    ]
    drawing = sequence.load_throughput(sources, 0.1)
    assert "windows of 100 ms, n = 600" in drawing.caption
    assert "db1 (readings of each second, windows of 1 s, n = 60)" in drawing.caption
    assert "reaches 90 % of its maximum (50/s) with about 9.7 requests" in drawing.finding
    assert {"requests in progress", "completions/s"} <= set(axis_labels(drawing.figure))
    assert svg(drawing, ORIGIN)
    assert "Not shown" not in drawing.caption
    frame.loc[:2, "rate"] = 500.0
    drawing = sequence.load_throughput([sequence.Source("db1", "db", "its log", 0.1, frame)], 0.1)
    assert "Not shown: 3 windows with a rate beyond the axis." in drawing.caption


def test_without_a_completion_per_window_no_line_is_drawn():
    """1.5/s in windows of 100 ms: the line would go to and fro between windows with one completion and with none."""
    rng = np.random.default_rng(4)
    done = np.sort(rng.uniform(0, 200, 300))
    load, rate = windows(done - rng.exponential(2.0, 300), done, 0.0, 200.0, 0.1)
    frame = pd.DataFrame({"trial": "t", "users": 40, "load": load, "rate": rate})
    drawing = sequence.load_throughput([sequence.Source("whole system", "all", "the client's log", 0.1, frame)], 1.0)
    assert drawing.finding.startswith("Too little was measured")
    assert "No line for whole system: a window holds less than one completion" in drawing.caption
    assert not any(len(line.get_xdata()) for line in drawing.figure.axes[0].lines)


# ---- densities of other resources ----------------------------------------------------------------------------------


def test_a_density_of_a_device_names_it_everywhere():
    rng = np.random.default_rng(3)
    values = pd.DataFrame({"trial": "t", "users": 1000, "t_s": np.arange(100.0), "value": rng.uniform(0, 100, 100)})
    share = {"saturation": 0.2, "saturation_low": 0.1, "saturation_high": 0.3, "n_effective": 50.0, "valid": True}
    shares = pd.DataFrame([{"users": 1000} | share])
    curves = densities.node_densities(values)
    key = {"node": "db1", "resource": "disk", "item": "sda/1"}
    flat = densities.density_map(curves, shares, tier="db", scale=1.0, **key)
    assert flat.name == "density-map-db1-disk-sda_1"
    assert "disk sda/1 utilization of db1 [%]" in axis_labels(flat.figure)
    assert flat.finding.startswith("The disk sda/1 of db1 was at or above 95 % for a share of at most 0.20")
    surface = densities.density_surface(curves, shares, scale=1.0, **key)
    assert surface.figure.axes[0].get_xlabel() == "disk sda/1 utilization of db1 [%]"
    surface.figure.draw_without_rendering()
    box = surface.figure.axes[0].xaxis.label.get_window_extent()
    assert box.y0 >= 0, "the label is cut off"
    pool = densities.density_map(curves, shares, node="app1", tier="app", resource="pool", item="threads", scale=1.0)
    assert "full (or requests wait for it)" in pool.finding
    assert "requests waited for a place" in pool.caption
