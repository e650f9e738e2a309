"""The paper's map stands twice in its study: place by place, and in the claims. What an interaction costs says how far
each tier is from limiting."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest
from ntier_analysis.expectation import claims

STUDY = Path(__file__).resolve().parents[1] / "ntier-scalability"
CELL = re.compile(r"1-(\d)-1-(\d)(M|P|ML)\.browse_only\.shardingsphere\.s0_2")

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


@pytest.mark.parametrize("limits", ["single {}", "multi simultaneous {}", "multi alternating {}", "{}"])
def test_a_place_shows_what_limits_and_not_how(monkeypatch, limits):
    monkeypatch.syspath_prepend(STUDY)
    found = importlib.util.spec_from_file_location("page_of_the_paper", STUDY / "page.py")
    page = importlib.util.module_from_spec(found)
    found.loader.exec_module(page)
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
    *_, first, second = costs.table(places, {facts.sweep: "db cpu: 100", "slow": "db cpu: 50"}, 1.0).splitlines()
    cells = r"( [\d.]+ ms: \d+ \|){3} [\d.]+ ms: \*\*\d+\*\* \|"
    assert re.fullmatch(rf"\| 1/1/1/1M \|{cells} db cpu: 100 \| 1 \|", first)
    assert re.fullmatch(rf"\| 1/1/1/3M \|{cells} db cpu: 50 \| 1\.00 \[0\.\d+, 1\.\d+\] \|", second)
