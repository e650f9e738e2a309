"""The paper's map stands twice in its study: place by place, and in the claims. What an interaction costs says how far
each tier is from limiting."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from ntier_analysis.expectation import claims
from ntier_analysis.expectation.quantity import Quantity, mean_of_trials
from ntier_analysis.expectation.sides import Blocks, Side, read_operands
from ntier_analysis.figures.maps import NO_LIMIT, Grid, tint

STUDY = Path(__file__).resolve().parents[1] / "ntier-scalability"
CELL = re.compile(r"1-(\d)-1-(\d)(M|P|ML)\.browse_only\.shardingsphere\.s0_[12]")

with (STUDY / "paper.csv").open(newline="") as file:
    PAPER = {(r["application_servers"], r["databases"], r["letters"]): r["limits"] for r in csv.DictReader(file)}
PARTS = [(CELL.fullmatch(sweep), text) for claim in claims.read(STUDY / "claims.yaml") for sweep, text in claim.parts]


def test_claims_on_what_limits_are_those_of_the_papers_map():
    verdicts = re.compile(r"verdict == (?:single|multi simultaneous) (.+)")
    said = [(cell.groups(), match[1]) for cell, text in PARTS if cell and (match := verdicts.fullmatch(text))]
    assert len(said) > 50
    assert said == [(place, PAPER[place]) for place, _ in said]


def test_every_place_of_the_map_is_in_a_claim():
    assert {cell.groups() for cell, _ in PARTS if cell} >= set(PAPER)


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(STUDY)
    found = importlib.util.spec_from_file_location("page_of_the_paper", STUDY / "page.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("limits", ["single {}", "multi simultaneous {}", "multi alternating {}", "{}"])
def test_a_place_shows_what_limits_and_not_how(page, limits):
    for names in ("db cpu and middleware cpu", "unknown"):
        assert page.named(limits.format(names)) == names


@pytest.fixture
def costs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(STUDY)
    module = importlib.import_module("costs")
    monkeypatch.setattr(module, "FILE", tmp_path / "data" / "costs.csv")
    return module


def test_the_tier_that_costs_would_fill_first_is_the_one_that_limits(costs, facts):
    """By a measured sweep, in which the database is all but full, and the middleware used 84 %."""
    costs.keep([facts], [facts.sweep])
    full = costs.full_at(costs.read(), scale=1.0)["per_s"].sort_values()
    assert facts.named == f"single {full.index[0]} cpu"
    assert 1.0 <= full.iloc[0] / facts.verdict["max_throughput_per_s"] < 1.1
    assert full.index[1] == "middleware"
    assert full.iloc[0] / full.iloc[1] == pytest.approx(0.84, abs=0.02)


def test_costs_of_sweeps_that_are_wanted_no_more_go_and_others_stay(costs, facts):
    costs.keep([facts], [facts.sweep])
    costs.keep([], [facts.sweep])
    assert set(costs.read()["sweep"]) == {facts.sweep}
    costs.keep([], [])
    assert costs.read().empty


def test_the_table_of_costs(costs, facts):
    """A second place with the same trials on a machine of half the speed: half the throughput, twice the cost."""
    costs.keep([facts], [facts.sweep])
    slow = costs.read().assign(sweep="slow")
    slow = slow.assign(throughput_per_s=slow["throughput_per_s"] / 2, cpu_ms=2 * slow["cpu_ms"])
    pd.concat([costs.read(), slow]).to_csv(costs.FILE, index=False)
    places = [("1/1/1/1M", facts.sweep), ("1/1/1/2M", "not measured"), ("1/1/1/3M", "slow")]
    *_, first, second = costs.table(
        places, {facts.sweep: "db cpu: 100", "slow": "db cpu: 50"}, lambda _: 1.0
    ).splitlines()
    cells = r"( [\d.]+ ms: \d+ \|){3} [\d.]+ ms: \*\*\d+\*\* \|"
    assert re.fullmatch(rf"\| 1/1/1/1M \| 8 \|{cells} db cpu: 100 \| 1 \|", first)
    assert re.fullmatch(rf"\| 1/1/1/3M \| 8 \|{cells} db cpu: 50 \| 1\.00 \[0\.\d+, 1\.\d+\] \|", second)


def test_a_lower_bound_leaves_the_ratio_of_throughputs_open(costs, facts):
    """One side's or the other's, or both; without this a lower bound was told with two ends."""
    costs.keep([facts], [facts.sweep])
    pd.concat([costs.read(), costs.read().assign(sweep="other")]).to_csv(costs.FILE, index=False)
    places, told = [("first", facts.sweep), ("second", "other")], {facts.sweep: "db cpu: 100", "other": "db cpu: 100"}

    def ratio(*least: str) -> str:
        return costs.table(places, told, lambda _: 1.0, least).splitlines()[-1].split("|")[-2].strip()

    assert re.fullmatch(r"1\.00 \[0\.\d+, 1\.\d+\]", ratio())
    assert re.fullmatch(r"1\.00, at least 0\.\d+", ratio("other"))
    assert re.fullmatch(r"1\.00, at most 1\.\d+", ratio(facts.sweep))
    assert ratio(facts.sweep, "other") == "not known: both are lower bounds"


@pytest.mark.parametrize(
    ("limits", "tiers"),
    [
        ("db cpu", ["db"]), ("db disk", ["db"]), ("app pool", ["app"]),
        ("db disk and middleware cpu", ["db", "middleware"]),
        ("db cpu, then app cpu", ["db", "app"]), ("unknown", []), ("none", []),
    ],
)  # fmt: skip
def test_a_place_of_the_map_has_the_colours_of_the_tiers_that_limit(monkeypatch, limits, tiers):
    """Whatever of them is full: a full disk had the colour of no limit."""
    monkeypatch.syspath_prepend(STUDY)
    figures = importlib.import_module("figures")
    axes = Figure().subplots()
    figures._place(axes, Grid([(1, 1)]), 0, 0, limits, "1.00")
    assert [to_hex(p.get_facecolor()) for p in axes.patches] == ([tint(t) for t in tiers] or [NO_LIMIT])


@pytest.fixture
def drawn_maps(page, monkeypatch):
    """By title, as functions, what page.py draws of these rows of maxima.csv."""

    def of(rows: dict[str, dict[str, str]]) -> dict:
        found = {}
        monkeypatch.setattr(page, "rows", lambda: {name: row | {"sweep": name} for name, row in rows.items()})
        monkeypatch.setattr(
            page.drawn, "draw_maps", lambda pairs, *_: found.update(one for both in pairs for one in both)
        )
        page.maps()
        return found

    return of


def test_a_place_of_the_map_says_that_it_is_of_another_scale(page, drawn_maps):
    """Four databases of PostgreSQL were measured at scale 0.2, six at 0.1, where the middleware costs more."""
    row = {"limits": "single db cpu", "max_per_s": "40", "at_least": "0", "anchor_per_s": "50"}
    there = drawn_maps({page.sweep_at(1, databases, "P", page.PROXY): row for databases in (4, 6)})
    ours = there["PostgreSQL, normal nodes (Figures 2(b), 3(b)): here"]
    assert [ours(1, databases)[1] for databases in (4, 6)] == ["0.80", "0.80*"]


def test_the_second_middleware_has_its_own_map_and_no_number_where_no_anchor_ran_beside_it(page, drawn_maps):
    row = {"max_per_s": "40", "at_least": "1"}
    there = drawn_maps({
        page.sweep_at(2, 4, "M", page.PROXY): row | {"limits": "single middleware cpu", "anchor_per_s": "40"},
        page.sweep_at(2, 4, "M", "haproxy"): row | {"limits": "unknown", "anchor_per_s": "20"},
        page.sweep_at(1, 2, "M", "haproxy"): row | {"limits": "single db cpu", "anchor_per_s": ""},
    })  # fmt: skip
    ours = there["MySQL, normal nodes, behind HAProxy: here"]
    assert [ours(*place) for place in ((2, 4), (1, 2), (3, 9))] == [("unknown", "≥ 2.00"), ("db cpu", ""), ("", "")]
    assert there["MySQL, normal nodes, behind C-JDBC: the paper"](2, 4) == ("middleware cpu", "")


def test_what_is_kept_of_an_anchor_is_of_the_scale_of_its_block(page):
    """Else its block is told in units of another cell."""
    kept = page.costs.read()
    kept = kept[kept["sweep"].str.contains(page.ANCHOR, regex=False)].groupby("sweep")["cores"].unique()
    assert len(kept) > 20
    assert {name: list(cores) for name, cores in kept.items()} == {name: [page.scale_of(name)] for name in kept.index}


def test_ratios_of_identical_cells_are_seldom_not_1(monkeypatch):
    """The anchors are one cell, measured again and again. By what trials differ by alone, 17 % of their ratios were not
    1; with what blocks differ by, as the claims have it, 5 % at most are not."""
    monkeypatch.syspath_prepend(STUDY)
    costs = importlib.import_module("costs")
    known, reckoned = claims.between(STUDY / "claims.yaml")["cores(web)"], costs.between_blocks(0.2)
    assert known.sd == pytest.approx(reckoned.sd, abs=0.003)
    assert known.freedom == pytest.approx(reckoned.freedom, abs=3)
    used = {name: mean_of_trials(costs.front_cores(trials)) for name, trials in costs._anchors(0.2).items()}
    blocks = Blocks(differ={"cores(web)": known})
    pairs = len(used) * (len(used) - 1) / 2

    def between(*names: str) -> Quantity | None:
        return blocks.between([Side("cores", "web", False, name) for name in names])

    assert pairs > 250
    assert costs.missed(used, lambda *_: None) / pairs > 0.07
    assert costs.missed(used, between) / pairs <= 0.05


def test_what_blocks_differ_by_is_found_and_not_made_of_what_trials_differ_by(costs, monkeypatch):
    """200 groups of four trials that differ by 6 %, with blocks that differ by 5 % and without."""
    rng = np.random.default_rng(3)

    def reckoned(sd: float) -> float:
        logs = rng.normal(0, sd, (200, 1)) + rng.normal(0, 0.06, (200, 4))
        rows = [
            {"sweep": f"c.anchor-{i}", "throughput_per_s": 100.0, "tier": "web", "cores": 0.2, "cpu_ms": np.exp(x)}
            for i, group in enumerate(logs)
            for x in group
        ]
        monkeypatch.setattr(costs, "read", lambda: pd.DataFrame(rows))
        return costs.between_blocks(0.2).sd

    assert reckoned(0.05) == pytest.approx(0.05, abs=0.01)
    assert reckoned(0.0) < 0.02


CLAIMS = {claim.name: claim for claim in claims.read(STUDY / "claims.yaml")}


def test_a_tier_is_no_bottleneck_only_if_it_is_not_full():
    """`verdict != single db cpu` alone also holds if db and another tier limit together."""
    excluded = re.compile(r"verdict != single (\w+ \w+)")
    for claim in CLAIMS.values():
        for sweep, text in claim.parts:
            if (match := excluded.fullmatch(text)) and "migrate" not in claim.says:
                assert (sweep, f"saturation({match[1]}) <= 50 %") in claim.parts, claim.name


def test_claims_reach_as_far_as_their_sentences():
    """A claim up to seven databases needs seven, one from the fourth on needs four, one on databases compares them."""
    of = {name: {sweep.partition(".")[0] for sweep, _ in claim.parts} for name, claim in CLAIMS.items()}
    assert {"1-2-1-7ML", "1-3-1-7ML"} <= of["low-cost-scales-to-seven"]
    assert {"1-1-1-4P", "1-2-1-4P"} <= of["postgresql-ahead"]
    assert any("1-2-1-8ML" in text for _, text in CLAIMS["low-cost-nothing-helps-then"].parts)
    assert "80 %" not in CLAIMS["nine-databases-not-saturated"].says


def test_what_is_kept_of_maxima_agrees_in_all_three_files(page):
    """Verdicts stand in maxima.csv and in the outcomes, maxima in anchors in the operands, too."""
    limits = {name: row["limits"] for name, row in page.rows().items()}
    said = {(sweep, seen.seen) for (_, sweep, text), seen in claims.read_parts(STUDY / "outcomes.csv").items()
            if text.startswith("verdict") and " of " not in text}  # fmt: skip
    assert len(said) > 30
    assert said == {(sweep, limits[sweep]) for sweep, _ in said}
    kept, reckoned = read_operands(STUDY / "operands.csv"), page.of_maxima()
    both = [key for key in kept if key in reckoned]
    assert len(both) > 8
    for key in both:
        one, other = kept[key].measured, reckoned[key].measured
        for end in ("low", "high"):
            assert getattr(one, end) == pytest.approx(getattr(other, end), rel=0.02), key
        assert one.value == pytest.approx(other.value, rel=0.01), key
