"""The study's page is what its data make, and its claims are those of the thesis' tables."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from ntier_analysis.expectation.claims import read

STUDY = Path(__file__).resolve().parents[3] / "studies/two-phase-commit"
spec = importlib.util.spec_from_file_location("two_phase_page", STUDY / "page.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)


def test_the_page_is_that_of_the_data():
    assert page.page() == (STUDY / "README.md").read_text()


def test_the_page_has_every_claim():
    rows = (STUDY / "claims.md").read_text().splitlines()
    claims = read(STUDY / "claims.yaml")
    assert len(rows) == 2 + len(claims)
    for claim, row in zip(claims, rows[2:], strict=True):
        assert row.startswith(f"| {claim.says} | {claim.place} | {claim.paper} | ")


ALTERS = {
    (int(r["nodes"]), r["mode"], float(r["sleep_s"])): float(r["queries_per_s"]) - page.SELECTS / float(r["seconds"])
    for r in page.rows("thesis.csv")
}


@pytest.mark.parametrize("claim", read(STUDY / "claims.yaml"), ids=lambda claim: claim.name)
def test_a_claim_states_the_ratio_of_the_thesis_tables_and_holds_there(claim):
    """The numbers of the expectation's two sides, from tables 2 to 4; the claim must be true of the paper itself."""
    sides = re.findall(r"throughput\(([\d.]+) alter\) of two-phase-commit\.(\d)\.(\w+)", claim.expect)
    (upper, lower) = (ALTERS[int(nodes), mode, float(sleep)] for sleep, nodes, mode in sides)
    ratio = upper / lower
    assert float(re.search(r"\d+\.\d+", claim.paper)[0]) == pytest.approx(ratio, rel=0.03)
    op, bound = re.search(r"(<=|>=|<|within) ([\d.]+)", claim.expect).groups()
    holds = {"<=": ratio <= float(bound), ">=": ratio >= float(bound), "<": ratio < float(bound),
             "within": abs(ratio - 1) <= float(bound) / 100}  # fmt: skip
    assert holds[op]
