"""The page over topologies: what figures say, that what is not measured stays empty, and that it is self-contained."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import mesh
import pandas as pd
import pytest
from ntier_analysis.campaign import costs
from ntier_analysis.campaign.cells import Campaign
from ntier_analysis.campaign.compare import groups, ratios
from ntier_analysis.campaign.costs import read_prices
from ntier_analysis.campaign.store import read_campaign
from ntier_analysis.figures import maps, surfaces
from ntier_analysis.report.maps import sentence, write_map
from ntier_analysis.verdict.store import judge_again
from pictures import no_drawn_pictures, no_picture_files

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def found(made_once) -> Campaign:
    def make(folder: Path) -> None:
        mesh.write_mesh(folder, databases=(1, 2, 4), apps=(1, 2), kinds=("M", "ML"))
        judge_again(folder, [])

    return read_campaign(made_once("map", make))


@pytest.fixture(scope="module")
def page(found, made_once) -> Path:
    return made_once("map_page", lambda folder: write_map(found, read_prices(), None, folder)) / "map.html"


def texts(drawing) -> list[str]:
    return [t.get_text() for t in drawing.figure.axes[0].texts]


def mysql(found: Campaign):
    return next(cells for c, cells in found.maps.items() if not c.low_cost)


def test_every_place_of_the_map_is_a_verdict_or_said_to_be_missing(found):
    cells = mysql(found)
    drawing = maps.bottleneck_map(cells, groups(cells), "MySQL", "m")
    shown = texts(drawing)
    assert shown.count("not\nmeasured") == 1
    assert sum("CPU" in t for t in shown) == len(cells) == 5
    for c in cells:
        assert maps.rate(c) in shown
        assert f"[{c.low_per_s:.0f}, {c.high_per_s:.0f}]" in shown
    assert "1/2/1/2M" not in set(drawing.data["topology"])


def test_thick_lines_separate_different_bottlenecks_only(found):
    cells = mysql(found)
    drawing = maps.bottleneck_map(cells, groups(cells), "MySQL", "m")
    # columns 1, 2, 4 databases; rows 1, 2 application servers; the hole at (2, 2) gets none
    lines = {tuple(map(tuple, line.get_xydata().tolist())) for line in drawing.figure.axes[0].lines}
    assert lines == {((1.0, 0.0), (1.0, 1.0)), ((2.0, 1.0), (3.0, 1.0))}


def test_tints_differ_in_grey_and_carry_dark_text():
    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    found = sorted(luminance(c) for c in maps.TINTS)
    assert all(b - a > 0.05 for a, b in itertools.pairwise(found))
    assert min((v + 0.05) / 0.05 for v in found) > 4.5  # contrast of black text, WCAG AA


def test_surface_has_patches_only_between_four_measured_neighbours(found):
    cells = mysql(found)
    figure = surfaces.throughput_surface(cells, "MySQL", "m").figure
    assert len(figure.axes[0].collections) == 0  # the hole touches both patches
    whole = next(cells for c, cells in found.maps.items() if c.low_cost)
    assert len(surfaces.throughput_surface(whole, "MySQL", "m").figure.axes[0].collections) == 2


def test_no_two_rows_look_alike_and_eight_not_even_in_grey():
    looks = [surfaces.row_look(i) for i in range(56)]
    assert len(set(looks)) == 56
    assert len({look[1:] for look in looks[:8]}) == 8


def test_a_lower_bound_is_hollow_on_the_surface(found):
    cells = mysql(bounded(found, lambda c: str(c.topology) == "1/1/1/2M"))
    for draw in (surfaces.throughput_surface, surfaces.throughput_lines):
        drawing = draw(cells, "MySQL", "m")
        hollow = [line for line in drawing.figure.axes[0].lines if line.get_markerfacecolor() == "white"]
        assert len(hollow) == 1
        assert "hollow: a lower bound" in drawing.caption


def test_ratio_says_by_how_much_and_whether_it_is_the_same(found):
    (ratio,) = ratios(found)
    drawing = maps.ratio_map(ratio, "r", "low-cost / normal")
    assert any(re.fullmatch(r"0\.3\d ▼", t) for t in texts(drawing))
    assert drawing.data.set_index(["databases", "application_servers"]).loc[(1, 1), "relation"] == "lower"
    assert drawing.caption.endswith("Nominal maxima, all at scale 0.2.")


def test_a_ratio_of_two_scales_says_what_it_assumes(found):
    ten = {k: [replace(c, scale=0.1) if c.topology.low_cost else c for c in v] for k, v in found.maps.items()}
    (ratio,) = ratios(replace(found, maps=ten))
    caption = maps.ratio_map(ratio, "r", "low-cost / normal").caption
    assert caption.endswith(
        "Nominal maxima of scales 0.1 and 0.2: a ratio assumes that CPU per interaction does not depend on the scale."
    )


def bounded(found: Campaign, wanted) -> Campaign:
    marked = {k: [replace(c, at_least=wanted(c)) for c in cells] for k, cells in found.maps.items()}
    return replace(found, maps=marked)


def test_no_interval_of_a_lower_bound_is_closed(found, tmp_path):
    some = bounded(found, lambda c: c.topology.low_cost)
    (ratio,) = ratios(some)
    assert any(re.fullmatch(r"≥ 0\.3\d \?", t) for t in texts(maps.ratio_map(ratio, "r", "low-cost / normal")))
    (ratio,) = ratios(bounded(found, lambda c: not c.topology.low_cost))
    drawing = maps.ratio_map(ratio, "r", "low-cost / normal")
    assert any(re.fullmatch(r"≤ 0\.3\d ▼", t) for t in texts(drawing))
    assert drawing.finding.startswith("low-cost / normal: no ratio, and a lower bound on one side or both in 5 topolog")
    (ratio,) = ratios(bounded(found, lambda c: True))
    drawing = maps.ratio_map(ratio, "r", "low-cost / normal")
    assert not any(re.search(r"\d", t) for t in texts(drawing))

    one = bounded(found, lambda c: str(c.topology) == "1/1/1/2M")
    cells = mysql(one)
    there = next(c for c in cells if c.at_least)
    shown = texts(maps.bottleneck_map(cells, groups(cells), "MySQL", "m"))
    assert f"[{there.low_per_s:.0f}, ∞)" in shown
    with no_drawn_pictures():
        html = write_map(one, read_prices(), None, tmp_path).read_text()
    assert re.search(r"1/1/1/1M → 1/1/1/2M: at least 1\.\d\d \[1\.\d\d, ∞\) times as much, a gain", html)
    assert re.search(r"1/1/1/2M → 1/1/1/4M: at most 1\.\d\d \[0\.00, 1\.\d\d\] times as much, undecided", html)
    assert re.search(r"≥ \d+ \[\d+, ∞\)", html)
    assert "Of 1 of 5 topologies only a lower bound is known." in html
    assert "Of 1 topology only a lower bound is known: with more, the order may change." in html


def test_frontier_is_what_nothing_as_cheap_beats():
    rows = pd.DataFrame({"topology": list("abcd"), "price_per_hour": [1, 1, 2, 3.0], "max_per_s": [10, 20, 15, 30.0]})
    assert surfaces.frontier(rows)["topology"].tolist() == ["b", "d"]


def test_page_is_self_contained_and_says_what_limits(found, page):
    html = page.read_text()
    assert page.stat().st_size <= 3_000_000
    assert re.search(r"<h1>What limits 11 topologies: .*db CPU in \d", html)
    assert sentence(found).split(":")[0] in html
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", html)
    alternatives = re.findall(r"<img [^>]*alt=\"([^\"]*)\"", html)
    assert len(alternatives) >= 8
    assert all(len(a) > 30 and a.endswith(".") for a in alternatives)
    for caption in re.findall(r"<figcaption>(.*?)</figcaption>", html, re.S):
        assert re.search(r"n = \d", caption)
        assert "scale" in caption
    assert not re.search(
        r"\bnan\b", re.sub(r"<script.*?</script>|<style.*?</style>|base64,[^\"]*", "", html, flags=re.S)
    )


def test_the_table_of_topologies_has_intervals(found, page):
    table = pd.read_csv(page.parent / "tables/topologies.csv", comment="#").set_index("topology")
    for c in found.cells:
        low, high = c.saturation_interval
        assert low <= c.saturation <= high
        assert table.loc[str(c.topology), "saturation"] == f"{c.saturation:.2f} [{low:.2f}, {high:.2f}]"
        best = costs.within(c, None)
        ends = [float(v.replace(",", "")) for v in re.findall(r"[\d,.]+\d", table.loc[str(c.topology), "within"])]
        assert ends == pytest.approx([best.rate.value, best.rate.low, best.rate.high, best.users], rel=0.01)


def test_tables_lie_beside_it(found, page):
    folder = page.parent / "tables"
    assert len(pd.read_csv(folder / "topologies.csv", comment="#")) == 11
    pairs = pd.read_csv(folder / "pairs.csv", comment="#")
    assert set(pairs["relation"]) <= {"same", "higher", "lower", "undecided"}
    assert len(pd.read_csv(folder / "scaling.csv", comment="#")) == 6
    assert {p.suffix for p in (page.parent / "figures").iterdir()} == {".png", ".pdf", ".csv"}


def test_two_topologies_are_enough(tmp_path):
    mesh.write_sweep(tmp_path / "store", "1/1/1/1M", loads=(1000, 3000, 6000, 7000, 8000))
    mesh.write_sweep(tmp_path / "store", "1/1/1/1P", loads=(1000, 2000, 6000, 7000, 8000))
    with no_picture_files():
        html = write_map(read_campaign(tmp_path / "store"), read_prices(), 1000.0, tmp_path / "out").read_text()
    assert "PostgreSQL / MySQL" in html
