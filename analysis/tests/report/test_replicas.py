"""Sweeps on several replicas: what the report says of them, and policies side by side."""

from __future__ import annotations

import pandas as pd
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.report import write_report
from ntier_analysis.report.replicas import compare, write_comparison
from ntier_analysis.store.tables import read_table
from pictures import no_picture_files
from replicas import give_trace, simulate, spread
from synthetic import Spec, Truth, write_trial

pytestmark = pytest.mark.whole

TRUTH = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012})
SPLITS = {"least_pending": [60.0, 30.0, 10.0], "round_robin": [33.0, 33.0, 33.0], "random": [34.0, 32.0, 33.0]}


def sweep_of(policy: str) -> str:
    return f"1-1-1-3M.browse_only.shardingsphere.{policy}"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Three sweeps of two loads, traced, in one store."""
    base = tmp_path_factory.mktemp("policies")
    for policy, rates in SPLITS.items():
        for number, users in enumerate((500, 1000)):
            spec = Spec(users, TRUTH, phases=(5.0, 40.0, 2.0), seed=users, sweep=sweep_of(policy), seal=False,
                        start_s=1_750_000_000.0 + 100 * number, topology="1/1/1/3M")  # fmt: skip
            folder = write_trial(base / "raw", spec)
            spread(folder, rates, policy=policy)
            give_trace(folder, simulate(policy, n=2000, load=5.0, start_s=spec.start_s + 6))
        found = ingest_sweep(base / "raw" / sweep_of(policy), base / "store")
        assert found.problems == []
    return base


def test_the_store_knows_the_policy_and_what_it_chose(base):
    trials = read_table(base / "store", "trials", sweep_of("least_pending"))
    assert set(trials["policy"]) == {"least_pending"}
    choices = read_table(base / "store", "choices", sweep_of("least_pending"))
    assert set(choices["node"]) == {"middleware1"}
    assert choices.loc[choices["measure"] == "pending", "n"].groupby(choices["trial"]).sum().tolist() == [2000, 2000]


def test_the_report_shows_shares_and_choices(base, tmp_path):
    with no_picture_files():
        page = write_report(base / "store", sweep_of("least_pending"), tmp_path)
    html = page.read_text()
    assert "db1 0.60 [0.60, 0.60]" in html  # a steady stream has no variance
    assert "Policy: least_pending (tie first)." in html
    assert '<h3 id="choices">' in html
    drawn = pd.read_csv(page.parent / "figures/statements-per-replica.csv", comment="#")
    means = drawn[drawn["t_s"].between(5, 35)].groupby("replica")["statements_per_s"].mean()
    assert means.to_dict() == pytest.approx({"db1": 60, "db2": 30, "db3": 10}, rel=0.02)
    traced = pd.read_csv(page.parent / "tables/choices.csv", comment="#")
    assert (traced["least"] == 1.0).all()


def test_policies_stand_side_by_side(base, tmp_path):
    text, folder = write_comparison(base / "store", [sweep_of(p) for p in SPLITS], tmp_path / "out")
    rows = [line for line in text.splitlines() if line.startswith("| 1,000 |")]
    assert [row.split("|")[2].strip() for row in rows] == ["least_pending (tie first)", "random", "round_robin"]
    assert "0.60 [0.60, 0.60]" in rows[0]
    assert rows[0].split("|")[-3].strip() == "100.0"
    table = pd.read_csv(folder / "policies-table.csv", comment="#").set_index(["policy", "users"])
    robin = table.loc["round_robin", 1000]
    assert robin["db3_share"] == pytest.approx(1 / 3, abs=0.01)
    assert robin["db3_share_low"] <= robin["db3_share"] <= robin["db3_share_high"]
    assert robin["regret_mean"] > table.loc[("least_pending (tie first)", 1000), "regret_mean"] == 0
    assert {p.name for p in folder.iterdir()} >= {"policies.png", "policies.pdf", "policies.csv", "policies.md"}


def test_the_figure_has_a_column_per_policy(base):
    _, drawing, origin = compare(base / "store", [sweep_of(p) for p in SPLITS])
    titles = [" ".join(axes.get_title(loc="left").splitlines()[:-1]) for axes in drawing.figure.axes[:3]]
    assert titles == ["least_pending (tie first)", "round_robin", "random"]
    assert "least_pending (tie first) 0.10 to 0.60" in drawing.finding
    assert len(origin.trials) == 6


def test_a_sweep_with_one_replica_cannot_be_compared(base, tmp_path):
    folder = write_trial(tmp_path / "raw", Spec(300, TRUTH, phases=(5.0, 20.0, 2.0)))
    ingest_sweep(folder.parent, tmp_path / "store")
    with pytest.raises(DataError, match="one replica only"):
        compare(tmp_path / "store", [folder.parent.name])


def test_a_trace_that_cannot_be_read_is_a_problem(base, tmp_path):
    folder = write_trial(tmp_path / "raw", Spec(300, TRUTH, phases=(5.0, 20.0, 2.0), seal=False))
    spread(folder, [10.0, 10.0])
    give_trace(folder, simulate("random", n=50))  # three numbers seen, but two replicas
    found = ingest_sweep(folder.parent, tmp_path / "store")
    assert "3 numbers seen, but 2 replicas" in found.problems[0]
