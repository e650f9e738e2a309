"""Properties of the figures: what they say, that it is what was measured, and where it came from."""

from __future__ import annotations

import io
import json
import re
import zlib

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from ntier_analysis.density import GRID_PCT
from ntier_analysis.figures import densities, loads, timeline
from ntier_analysis.figures.drawing import FONT_LAYOUT, Origin, placed, save, svg, write_csv
from ntier_analysis.figures.style import TIERS
from PIL import Image

ORIGIN = Origin(
    "1-1-1-1M.browse_only.x", "1/1/1/1M", ("u01000.r01", "u04000.r01"), 0.1, "abc123", "make sweep TOPO=1/1/1/1M"
)
USERS = (1000, 2000, 4000, 6000)


def samples() -> pd.DataFrame:
    """CPU at 10 Hz for 40 s: near 25 and 50 % at low load, half of the time pegged at 4,000, all of it at 6,000."""
    rng = np.random.default_rng(4)
    parts = []
    for users in USERS:
        level = {1000: rng.normal(25, 5, 400), 2000: rng.normal(50, 5, 400), 6000: np.full(400, 100.0)}
        values = level.get(users, np.where(np.arange(400) % 20 < 10, 100.0, 70.0))
        parts.append(
            pd.DataFrame(
                {"trial": f"u{users:05d}.r01", "users": users, "t_s": 10 + np.arange(400) / 10, "value": values}
            )
        )
    return pd.concat(parts, ignore_index=True)


def shares(invalid: tuple[int, ...] = ()) -> pd.DataFrame:
    frame = samples().groupby("users")["value"].agg(saturation=lambda v: (v >= 95).mean(), n="size").reset_index()
    low, high = (frame["saturation"] - 0.1).clip(lower=0), (frame["saturation"] + 0.1).clip(upper=1)
    return frame.assign(saturation_low=low, saturation_high=high, n_effective=50.0, valid=~frame["users"].isin(invalid))


def trials(invalid: tuple[int, ...] = ()) -> pd.DataFrame:
    users = np.array(USERS)
    rate = np.minimum(users / 70.5, 57.0)
    reasons = ["host_saturated" if u in invalid else "" for u in users]
    frame = pd.DataFrame({"users": users, "users_real": users // 10, "valid": ~np.isin(users, invalid)})
    return frame.assign(
        trial=[f"u{u:05d}.r01" for u in users],
        rep=1,
        scale=0.1,
        invalid_reasons=reasons,
        throughput_per_s=rate,
        throughput_low_per_s=rate - 1,
        throughput_high_per_s=rate + 1,
        goodput_per_s=rate * 0.9,
        response_time_mean_ms=[50.0, 60.0, 200.0, 3500.0],
        response_time_p50_ms=40.0,
        response_time_p95_ms=[90.0, 120.0, 600.0, 5000.0],
        response_time_p99_ms=[np.nan, np.nan, 900.0, 6000.0],
        interactions=(rate * 40).astype(int),
        errors=0,
        think_time_s=7.0,
        slo_ms=2000.0,
        run_start_s=1000.0,
        run_end_s=1040.0,
        ramp_up_start_s=980.0,
        ramp_down_end_s=1045.0,
    )


def labels(drawing) -> dict[str, list[float]]:
    """Label -> y values of the lines of all axes."""
    return {line.get_label(): list(line.get_ydata()) for axes in drawing.figure.axes for line in axes.lines}


def density_map(invalid: tuple[int, ...] = ()):
    curves = densities.node_densities(samples())
    return densities.density_map(curves, shares(invalid), node="db1", tier="db", resource="cpu", scale=0.1)


def test_map_shows_each_load_and_the_counted_share_beside_it():
    drawing = density_map()
    flat, strip = drawing.figure.axes[:2]
    mesh = next(c for c in flat.collections if isinstance(c, QuadMesh))
    assert mesh.get_array().shape == (len(USERS), len(GRID_PCT))
    drawn = {
        float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in strip.lines if line.get_marker() != "None"
    }
    assert drawn == {1000.0: 0.0, 2000.0: 0.0, 4000.0: 0.5, 6000.0: 1.0}


def test_the_share_is_not_read_off_the_curve():
    """At 4,000 users half of the samples are at 100 %; smeared by the kernel, less of the curve lies above 95 %."""
    curves = densities.node_densities(samples(), bandwidth_pct=10.0).set_index("users")
    above = GRID_PCT >= 95
    integrated = np.trapezoid(curves.loc[4000, "density"][above], GRID_PCT[above])
    assert integrated < 0.3
    assert shares().set_index("users").loc[4000, "saturation"] == 0.5


@pytest.mark.parametrize(
    "words", ["bandwidth 2 points", "n = 400", "scale 0.1", "reflected", "not read from the density"]
)
def test_caption_of_a_density_states_how_it_was_made(words):
    assert words in density_map().caption


def test_finding_names_node_load_and_share_with_interval():
    """At 4,000 users the share is 0.50 [0.40, 0.60]: that may be less than half."""
    assert density_map().finding == (
        "The CPU of db1 was at or above 95 % for more than half of the run phase at 6,000 users; share at 6,000 users: "
        "1.00 [0.90, 1.00]."
    )
    sure = shares().assign(saturation_low=lambda s: s["saturation"])
    found = densities._finding(sure, "db1", "cpu", "")
    assert "for more than half of the run phase from 4,000 users on; share at 6,000 users" in found


def test_finding_lists_the_loads_if_not_all_above_the_first_are_full():
    """As of a factor of which more asks for less: the sleep between two units of work."""
    falling = shares().assign(saturation=[1.0, 0.6, 0.1, 0.0], saturation_low=[0.9, 0.5, 0.0, 0.0])
    falling = falling.assign(saturation_high=[1.0, 0.7, 0.2, 0.1])
    curves = densities.node_densities(samples())
    drawing = densities.density_map(curves, falling, node="db1", tier="db", resource="cpu", scale=0.1)
    assert "of the run phase at 1,000 and 2,000 users; share at 1,000 users: 1.00 [" in drawing.finding


@pytest.mark.parametrize("loads", [(10, 50, 500, 600), (100, 10_000, 10_100, 10_200)])
def test_a_map_of_uneven_loads_has_none_below_0(loads):
    named = dict(zip(USERS, loads, strict=True))
    curves, of = (
        frame.assign(users=frame["users"].map(named)) for frame in (densities.node_densities(samples()), shares())
    )
    drawing = densities.density_map(curves, of, node="db1", tier="db", resource="cpu", scale=0.1)
    assert drawing.figure.axes[0].get_ylim()[0] == 0


def test_invalid_trials_are_marked_on_every_figure_that_shows_them():
    flat = density_map(invalid=(2000,))
    assert [t.get_text() for t in flat.figure.axes[0].texts] == ["INVALID"]
    assert "INVALID trials at 2,000 users" in flat.caption
    rate = loads.throughput(trials(invalid=(2000,)), None)
    assert len(labels(rate)["INVALID trial"]) == 1
    assert len(labels(rate)["throughput"]) == 3
    assert "INVALID trials (x, where measured): 2 k users" in rate.caption
    panel = timeline.timeline(interactions(), trials(invalid=(2000,)))
    assert any("INVALID, host_saturated" in a.get_title(loc="left") for a in panel.figure.axes)


def test_constant_and_gappy_series_are_drawn_and_gaps_counted():
    frame = samples()
    frame.loc[frame.index[5:15], "value"] = np.nan
    frame.loc[frame.index[20], "value"] = 117.0
    curves = densities.node_densities(frame)
    assert list(curves["n"]) == [390, 400, 400, 400]
    assert list(curves["n_missing"]) == [10, 0, 0, 0]
    drawing = densities.density_map(curves, shares(), node="db1", tier="db", resource="cpu", scale=1.0)
    assert "Missing samples (gaps): 10." in drawing.caption
    assert "1 of 1,590 samples above 100 % are drawn at 100 %" in drawing.caption
    curves.attrs["interval_s"] = 1.0
    drawing = densities.density_map(curves, shares(), node="db1", tier="db", resource="cpu", scale=1.0)
    assert "n = 390 to 400 means of 1 s per load" in drawing.caption
    assert "1 of 1,590 means of 1 s above 100 % are drawn at 100 %" in drawing.caption


def test_averages_keep_the_mean_and_leave_out_torn_intervals():
    frame = samples()
    means = densities.averaged(frame, 1.0)
    assert means.groupby("users")["value"].mean().to_dict() == pytest.approx(
        frame.groupby("users")["value"].mean().to_dict(), rel=0.02
    )
    assert set(means.groupby("users").size()) <= {39, 40}
    coarse = frame.iloc[::20]
    assert densities.averaged(coarse, 1.0) is coarse


def test_surface_of_one_load_is_a_curve():
    one = samples()[lambda f: f["users"] == 6000]
    drawing = densities.density_surface(
        densities.node_densities(one), shares()[lambda f: f["users"] == 6000], node="db1", resource="cpu", scale=1.0
    )
    assert len(drawing.figure.axes[0].lines) == 1
    assert svg(drawing, ORIGIN)


def test_throughput_draws_the_interactive_law_and_the_plateau():
    drawing = loads.throughput(trials(), loads.Plateau(57.0, 55.5, 58.5, 4020.0))
    lines = labels(drawing)
    assert lines["N / (Z + R)"] == pytest.approx([0.0, 600 / 7.05])
    assert lines["pooled plateau"] == [57.0, 57.0]
    assert "levels off at 57.0 [55.5, 58.5] interactions/s from about 4,000 users on" in drawing.finding
    nominal = drawing.figure.axes[0].child_axes[0]
    drawing.figure.draw_without_rendering()
    assert nominal.get_ylim()[1] == pytest.approx(drawing.figure.axes[0].get_ylim()[1] / 0.1)


@pytest.mark.parametrize(("knee", "side"), [(4020.0, "right"), (700.0, "left")])
def test_the_knee_is_named_and_no_legend_covers_data(knee, side):
    drawing = loads.throughput(trials(), loads.Plateau(57.0, 55.5, 58.5, knee))
    axes = drawing.figure.axes[0]
    (name,) = [text for text in axes.texts if text.get_text() == "knee"]
    assert name.xy[0] == knee
    assert name.get_horizontalalignment() == side  # near the left edge there is no room before the line
    full = shares().assign(trial="u", node="web1", tier="web", item="workers", utilization_mean_pct=50.0)
    for shown in (drawing, loads.pools(full, 0.1)):
        assert [part.get_legend() for part in shown.figure.axes] == [None] * len(shown.figure.axes)
        assert len(shown.figure.legends) == 1


def test_a_figure_is_drawn_once_per_file_and_its_layout_is_made_without_drawing(tmp_path, monkeypatch):
    drawn = []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda figure, renderer: drawn.append(renderer) or draw(figure, renderer))
    drawing = loads.throughput(trials(), None)
    engine = drawing.figure.get_layout_engine()
    with placed(drawing.figure):
        save(drawing, ORIGIN, tmp_path / "together")
        assert svg(drawing, ORIGIN)
    assert len(drawn) == 3  # PNG, PDF, SVG
    assert drawing.figure.get_layout_engine() is engine
    save(loads.throughput(trials(), None), ORIGIN, tmp_path / "alone")
    for name in ("throughput.png", "throughput.pdf"):
        assert (tmp_path / "together" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_no_nominal_axis_and_no_goodput_where_they_would_repeat_the_measured_line():
    measured = trials().assign(scale=1.0, slo_ms=np.nan)
    drawing = loads.throughput(measured.assign(goodput_per_s=measured["throughput_per_s"]), None)
    assert drawing.figure.axes[0].child_axes == []
    assert "goodput" not in labels(drawing)


def test_the_goodput_of_interactions_with_objectives_of_their_own_is_drawn():
    """The load has none, so slo_ms is empty."""
    assert "goodput" in labels(loads.throughput(trials().assign(slo_ms=np.nan), None))


def test_percentiles_with_too_few_samples_are_missing():
    drawn = labels(loads.response_time(trials()))
    assert len(drawn["p99"]) == 2
    assert len(drawn["p95"]) == 4


def interactions() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    parts = [
        pd.DataFrame({"trial": t.trial, "t_s": rng.uniform(980, 1045, 500), "ok": rng.random(500) > 0.02})
        for t in trials().itertuples()
    ]
    return pd.concat(parts, ignore_index=True)


def test_timeline_counts_every_completion_once_and_errors_apart():
    frame = interactions()
    data = timeline.timeline(frame, trials()).data
    assert data.groupby("trial")[["completed_per_s", "errors_per_s"]].sum().sum(axis=1).eq(500).all()
    assert data["errors_per_s"].sum() == (~frame["ok"]).sum()
    assert set(data.loc[data["t_s"] < 0, "phase"]) == {"ramp_up"}
    assert set(data.loc[data["t_s"].between(0, 39), "phase"]) == {"run"}


def test_tiers_differ_without_colour():
    looks = [(look.marker, str(look.line)) for look in TIERS.values()]
    assert len(set(looks)) == len(looks)
    assert len({look.color for look in TIERS.values()}) == len(TIERS)


def test_files_carry_their_origin_and_their_data(tmp_path):
    drawing = density_map()
    png, pdf, csv = save(drawing, ORIGIN, tmp_path)
    source = json.loads(Image.open(png).text["Source"])
    assert source["sweep"] == ORIGIN.sweep
    assert source["trials"] == list(ORIGIN.trials)
    assert (source["scale"], source["commit"], source["command"]) == (0.1, "abc123", "make sweep TOPO=1/1/1/1M")
    content = pdf.read_bytes()
    assert b"/Type3" not in content
    assert b"abc123" in content
    assert json.loads(csv.read_text().splitlines()[0].removeprefix("# "))["sweep"] == ORIGIN.sweep
    table = pd.read_csv(csv, comment="#")
    areas = table.groupby("users").apply(lambda g: np.trapezoid(g["density"], g["utilization_pct"]))
    assert areas.to_numpy() == pytest.approx(np.ones(len(USERS)), abs=1e-3)
    assert set(table["bandwidth_pct"]) == {2.0}


def pdf_streams(content: bytes) -> list[bytes]:
    """What a PDF holds, unpacked."""
    packed = re.findall(rb"/FlateDecode >>\nstream\n(.*?)\nendstream", content, re.DOTALL)
    return [zlib.decompress(stream) for stream in packed]


def test_fonts_of_a_pdf_are_small_and_all_else_is_as_matplotlib_writes_it(tmp_path):
    drawing = loads.throughput(trials(), None)
    before = subset.load_font
    _, pdf, _ = save(drawing, ORIGIN, tmp_path)
    assert subset.load_font is before, "other figures of the same program are left alone"
    plain = io.BytesIO()
    with mpl.rc_context({"pdf.fonttype": 42}), placed(drawing.figure):
        drawing.figure.savefig(plain, format="pdf")
    ours, theirs = pdf_streams(pdf.read_bytes()), pdf_streams(plain.getvalue())
    differ = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    fonts = [(TTFont(io.BytesIO(a)), TTFont(io.BytesIO(b))) for a, b in differ if a[:4] == b[:4] == b"\0\1\0\0"]
    assert fonts
    for small, whole in fonts:
        assert not set(FONT_LAYOUT) & set(small.keys())
        assert set(FONT_LAYOUT) & set(whole.keys())
        assert set(small.getBestCmap().items()) <= set(whole.getBestCmap().items())
    rest = [a for a, _ in differ if a[:4] != b"\0\1\0\0"]
    assert all(b"\0" in a for a in rest), "tables of glyph numbers; what is drawn is the same"


def test_equal_data_give_equal_files(tmp_path):
    for folder in ("a", "b"):
        save(loads.throughput(trials(), None), ORIGIN, tmp_path / folder)
    for name in ("throughput.png", "throughput.pdf", "throughput.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_spreadsheet_runs_no_formula(tmp_path):
    path = write_csv(
        pd.DataFrame({"label": ["=1+1", "-2", "@x", "+3", "fine"], "n": [-1, 2, 3, 4, 5]}), tmp_path / "t.csv"
    )
    assert list(pd.read_csv(path)["label"]) == ["'=1+1", "'-2", "'@x", "'+3", "fine"]
    assert list(pd.read_csv(path)["n"]) == [-1, 2, 3, 4, 5]


def test_origin_does_not_break_the_pdf_for_unusual_text(tmp_path):
    odd = Origin("s", "1/1/1/1M", (), 1.0, "c", 'make sweep NAME="ü (x" \\')
    assert save(loads.response_time(trials()), odd, tmp_path)


def test_nothing_is_claimed_of_invalid_loads_or_of_what_is_not_drawn():
    one = loads.throughput(trials(invalid=USERS[1:]), None)
    assert one.finding == "One valid load, 1,000 users: 14.2 interactions/s."
    assert "grey band" not in one.caption
    assert "pooled plateau" not in labels(one)
    some = loads.throughput(trials(invalid=USERS[2:]), None, verdict="none")
    assert some.finding == "No plateau was reached: throughput follows N/(Z+R) up to 2,000 users."
    unknown = loads.throughput(trials(invalid=USERS[2:]), None, verdict="unknown")
    assert unknown.finding == "Throughput is 14.2 to 28.4 interactions/s, most at 2,000 users."
