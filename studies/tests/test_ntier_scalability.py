"""The paper's map stands twice in its study: place by place, and in the claims."""

from __future__ import annotations

import csv
import re
from pathlib import Path

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
