"""What a report says that rented machines cost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ntier_analysis.contracts.manifest import Rent
from ntier_analysis.report import rent, summary, tables
from ntier_analysis.report.data import read_sweep


def trial(end_s: float, price: float = 0.5, **since_s: float) -> dict:
    rented = Rent(
        currency="EUR",
        price_per_hour=dict.fromkeys(since_s, price),
        types=dict.fromkeys(since_s, "ccx13"),
        since_s=since_s,
        location="fsn1",
        source="the price list (2026-08-17)",
    )
    return {"rent": rented.model_dump(), "steps": [{"step": "seal", "t_s": end_s, "event": "end"}], "phases": []}


@pytest.mark.parametrize(
    ("trials", "machine_hours"),
    [
        ([trial(100, db1=0, db2=0)], 2),
        ([trial(100, db1=0), trial(3600, db1=0)], 1),
        ([trial(3601, db1=0), trial(100, db1=0)], 2),
        ([trial(100, db1=0), trial(9000, db1=8000)], 2),  # another machine of that name
        ([trial(100, db1=0, db2=0), trial(4000, db1=0)], 3),  # db2 was not part of the second trial
    ],
)
def test_every_machine_costs_each_hour_that_it_began(trials: list[dict], machine_hours: int) -> None:
    found = rent.cost(trials)
    assert found["machine_hours"] == machine_hours
    assert found["amount"] == 0.5 * machine_hours


def test_where_nothing_is_rented_nothing_is_said(report) -> None:
    assert rent.cost([{"rent": None}, {}]) is None
    assert json.loads((report.folder / "report.json").read_text())["cost"] is None
    assert "rented" not in (report.folder / "report.md").read_text()


def test_the_report_says_what_it_cost(report) -> None:
    data = read_sweep(report.store, report.sweep)
    data = replace(data, manifests=[trial(4000, db1=0, client1=0)])
    found = summary.summary(data) | {"report": ""}
    sentence = "The rented machines cost 2.00 EUR: 4 hours begun on 2 machines, until the last trial ended."
    assert sentence in summary.text(found).splitlines()
    group = next(g for g in tables.provenance(data) if g["title"] == "Rented machines")
    assert dict(group["pairs"]) == {
        "cost": sentence,
        "price": "1 EUR per hour; the price list (2026-08-17)",
        "location": "fsn1",
        "ccx13": "db1, client1",
    }


def test_machines_without_a_price_do_not_cost_nothing() -> None:
    trials = [trial(4000, price=0, db1=0)]
    assert rent.sentence(rent.cost(trials)) == (
        "The rented machines have no known price: 2 hours begun on 1 machine, until the last trial ended."
    )
    assert dict(rent.pairs(trials))["price"] == "not known; the price list (2026-08-17)"
