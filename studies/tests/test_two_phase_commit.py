"""Which runs enter the tables of the study of two-phase commit, and that a run of another kind breaks no figure."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
from ntier_analysis.expectation import claims
from ntier_analysis.expectation.outcomes import Outcome, bounded, within
from ntier_analysis.expectation.quantity import Quantity

STUDY = Path(__file__).resolve().parents[1] / "two-phase-commit"
DONE = {"mode": "base", "seconds": 60.0, "selects": 4800, "alters": 480, "statements": 29280, "failed": 0,
        "queries_per_s": 568.0, "state": {}}  # fmt: skip


@pytest.fixture
def runs(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(STUDY)
    return importlib.import_module("runs")


@pytest.mark.parametrize("claim", claims.read(STUDY / "claims.yaml"), ids=lambda claim: claim.name)
def test_the_thesis_own_numbers_meet_what_is_expected(claim):
    """The first number of `paper` is the ratio there."""
    value = float(re.search(r"\d+(\.\d+)?(?= times)", claim.paper)[0])
    ((_, text),) = claim.parts
    *_, op, bound = re.fullmatch(r"ratio\(.*\) (\S+) ([\d.]+)( %)?", text).groups()[:2]
    measured = Quantity(value, value, value)
    found = within(measured, float(bound) / 100) if op == "within" else bounded(measured, op, float(bound))
    assert found is Outcome.HOLDS


def told(**settings: object) -> dict:
    return {
        "system": {"factor": {"name": "sleep_s", "value": 1.0}}, "soft_resources": settings, "topology": "4",
        "sweep": "two-phase-commit.4.base.s0_15", "rep": 1, "scale": 0.15,
        "phases": [{"name": "run", "start_s": 1_800_000_000.0}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "clients", "stands_apart"),
    [
        ({"alter_threads": 8, "amount": 4800, "balance": "turns", "ntier_scale": 0.15}, 1, ""),
        ({"alter_threads": 2}, 1, "alter_threads=2"),
        ({"amount": 1200, "balance": "least_pending"}, 1, "amount=1200 balance=least_pending"),
        ({"db_buffer_pool_bytes": 268435456}, 1, "db_buffer_pool_bytes=268435456"),
        ({"delay_ms": 5.0}, 1, "delay_ms=5"),
        ({}, 2, "clients=2"),
        ({"alter_threads": 0}, 1, ""),  # of the mode `selects`
    ],
)
def test_a_run_with_any_other_setting_stands_apart(runs, settings, clients, stands_apart):
    row = runs.result(told(**settings), DONE, "here", clients)
    assert sorted(row["set"].split()) == sorted(stands_apart.split())
    assert row["mode"] == ("selects" if settings.get("alter_threads") == 0 else "base")


def test_another_number_of_nodes_is_drawn(runs, monkeypatch):
    curves = importlib.import_module("curves")
    row = {"queries_per_s": "500", "seconds": "60", "alters": "480", "statements": "29280"}
    monkeypatch.setattr(curves, "measured", lambda: {(3, "base"): {1.0: [row, row]}})
    curves.draw_queries()


@pytest.mark.parametrize(
    ("beside", "whole", "named"),
    [
        ("  given: verdict == single db cpu\n", "", "claim faster: given: "),
        (
            "",
            "between blocks: {throughput(1 alter): {differ: 0.05, freedom: 9}}\n",
            "between blocks: runs are compared within",
        ),
    ],
)
def test_what_runs_do_not_tell_is_refused(monkeypatch, tmp_path, beside, whole, named):
    """It was ignored, and the claim judged as if it was not there."""
    monkeypatch.syspath_prepend(STUDY)
    judging = importlib.import_module("judging")
    file = tmp_path / "claims.yaml"
    plain = "faster:\n  says: a\n  place: b\n  paper: c\n  sweep: x\n"
    plain += "  expect: ratio(throughput(0.1 alter) of x, throughput(1 alter) of x) >= 2\n"
    several = {0.1: [("here", 9.0), ("here", 9.1)], 1.0: [("here", 3.0), ("here", 3.1)]}
    file.write_text(plain)
    assert judging.judge(claims.read(file), lambda _, sleep: several[sleep])[0].judged is claims.Judged.HOLDS
    file.write_text(plain + beside + whole)
    with pytest.raises(ValueError, match=re.escape(named)):
        judging.judge(claims.read(file), lambda _, sleep: several[sleep])
