"""A quantity has one value and one interval, whoever shows it: verdict, map, compare, check, demands, predict and
report."""

from __future__ import annotations

import json
from pathlib import Path

import mesh
import pandas as pd
import pytest
from ntier_analysis.cli import app
from ntier_analysis.figures import loads
from ntier_analysis.report.data import read_sweep
from pictures import no_picture_files
from typer.testing import CliRunner

pytestmark = pytest.mark.whole

A, B = "1-1-1-1M.browse_only.shardingsphere", "1-1-1-1P.browse_only.shardingsphere"
LOADS = (500, *mesh.LOADS)
"""Two below the saturation of the slower database too: only then is there a demand of both to compare."""
DIGITS = 1e-5
"""JSON has six decimals."""


@pytest.fixture(scope="module", params=[1, pytest.param(3, marks=pytest.mark.long)], ids=["once", "three times"])
def store(request, made_once) -> Path:
    def make(folder: Path) -> None:
        for topology in ("1/1/1/1M", "1/1/1/1P"):
            mesh.write_sweep(folder, topology, reps=request.param, loads=LOADS, judged=True)

    return made_once(f"one-number-{request.param}", make)


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(w) for w in words])
    assert done.exit_code in (0, 3), done.output
    return done.output


def written(*words: object) -> str:
    with no_picture_files():
        return run(*words)


@pytest.fixture(scope="module")
def verdicts(store) -> dict[str, dict]:
    return {v["sweep"]: v for v in json.loads(run("verdict", store, "--json"))["sweeps"]}


@pytest.fixture(scope="module")
def compared(store) -> pd.DataFrame:
    rows = json.loads(run("compare", A, B, "--store", store, "--json"))["rows"]
    return pd.DataFrame(rows)


def row_of(compared: pd.DataFrame, scope: str, metric: str, tier: str = "") -> pd.Series:
    wanted = (compared["scope"] == scope) & (compared["metric"] == metric) & (compared["tier"] == tier)
    assert wanted.sum() == 1
    return compared[wanted].iloc[0]


@pytest.fixture(scope="module")
def drawn(store, made_once) -> Path:
    """Tables of the map."""
    return made_once(f"map-of-{store.name}", lambda out: written("map", "--store", store, "--out", out))


@pytest.fixture(scope="module")
def reported(store, made_once) -> Path:
    """Tables of the report."""
    out = made_once(f"report-of-{store.name}", lambda out: written("report", A, "--store", store, "--out", out))
    return out / A / "tables"


def csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, comment="#")


def test_maximum(store, verdicts, compared, drawn):
    costs = csv(drawn / "tables" / "costs.csv").set_index("sweep")
    row = row_of(compared, "maximum", "throughput_per_s")
    for sweep, side in ((A, "a"), (B, "b")):
        value, (low, high) = verdicts[sweep]["max_throughput_per_s"], verdicts[sweep]["max_throughput_interval"]
        shown = costs.loc[sweep, ["max_per_s", "low_per_s", "high_per_s"]].to_numpy(float) * 0.2
        assert shown == pytest.approx([value, low, high], rel=DIGITS)
        assert row[side] == pytest.approx(value, rel=DIGITS)
    predicted = json.loads(run("predict", A, "--store", store, "--json"))
    assert predicted["measured_max_throughput_per_s"] == pytest.approx(verdicts[A]["max_throughput_per_s"], rel=DIGITS)
    plateau = read_sweep(store, A).plateau
    assert [plateau.low_per_s, plateau.high_per_s] == pytest.approx(verdicts[A]["max_throughput_interval"], rel=DIGITS)


def test_ratio_of_the_maxima(verdicts, compared, drawn):
    row = row_of(compared, "maximum", "throughput_per_s")
    assert row["ratio"] == pytest.approx(row["b"] / row["a"])
    ratios = [csv(p) for p in (drawn / "figures").glob("ratio-*.csv")]
    (place,) = [r for _, r in pd.concat(ratios).iterrows() if (r["sweep"], r["reference"]) == (B, A)]
    assert [place[k] for k in ("ratio", "low", "high")] == pytest.approx([row[k] for k in ("ratio", "low", "high")])


def test_check_sees_the_numbers_of_verdict_and_compare(store, verdicts, compared):
    beyond = ((compared["scope"] == "beyond the knees") & (compared["metric"] == "throughput_per_s")).any()
    beyond &= not any(verdicts[sweep]["max_throughput_at_least"] for sweep in (A, B))
    row = row_of(compared, "beyond the knees" if beyond else "maximum", "throughput_per_s")
    expected = {
        f"ratio({B}, {A}) >= 0.1": f"{row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
        "max_throughput >= 1": _text(verdicts[A]["max_throughput_per_s"], verdicts[A]["max_throughput_interval"]),
        "knee_users >= 1": _text(verdicts[A]["knee_users"], verdicts[A]["knee_interval"]),
    }
    for expectation, shown in expected.items():
        assert shown in run("check", store, "--sweep", A, "--expect", expectation), expectation


def _text(value: float, ends: list[float]) -> str:
    return f"{value:.4g} [{ends[0]:.4g}, {ends[1]:.4g}]"


def test_demand(store, compared, verdicts, reported):
    listed = pd.DataFrame(json.loads(run("demands", A, "--store", store, "--json"))).set_index("node")
    predicted = {d["tier"]: d for d in json.loads(run("predict", A, "--store", store, "--json"))["demands"]}
    table = csv(reported / "demands.csv").set_index("node")
    for node in listed.index:  # one node a tier: the node's demand is the tier's
        one = listed.loc[node]
        tier = predicted[one["tier"]]
        assert [tier["demand_ms"], *tier["interval_ms"]] == pytest.approx(one[["demand_ms", "low_ms", "high_ms"]])
        assert row_of(compared, "all loads", "demand_ms", one["tier"])["a"] == pytest.approx(one["demand_ms"])
        columns = ["demand_ms", "low_ms", "high_ms", "idle_cores"]
        assert table.loc[node, columns].to_numpy(float) == pytest.approx(one[columns].to_numpy(float))
    said = next(e for e in verdicts[A]["evidence"] if e.startswith("utilization law: db1 needs"))
    assert f"needs {listed.loc['db1', 'demand_ms']:.2f} ms" in said


def test_throughput_at_a_load(store):
    data = read_sweep(store, A)
    users = 1000
    rows = data.trials[data.trials["users"] == users]
    shown = run("check", store, "--sweep", A, "--expect", f"throughput({users}) >= 1")
    if len(rows) == 1:
        value, *ends = rows[["throughput_per_s", "throughput_low_per_s", "throughput_high_per_s"]].iloc[0]
        assert _text(value, ends) in shown
    answer = json.loads(run("cheapest", "--throughput", 1, "--store", store, "--slo-ms", 20, "--json"))
    mine = next(t for t in answer["topologies"] if t["sweep"] == A)
    if mine["users"] == users:
        assert _text(0.2 * mine["throughput_per_s"], [0.2 * mine["low_per_s"], 0.2 * mine["high_per_s"]]) in shown


def test_tables_keep_every_digit(store, reported):
    table, data = csv(reported / "trials.csv"), read_sweep(store, A)
    assert (table["run_start_s"].to_numpy() == data.trials["run_start_s"].to_numpy()).all()
    assert (table["throughput_per_s"].to_numpy() == data.trials["throughput_per_s"].to_numpy()).all()


def test_a_pool_is_full_in_figure_and_text_by_one_definition():
    """Requests wait all the time for a place in one of the pools whose sum is hardly used."""
    rows = pd.DataFrame(
        {"users": [100, 200], "trial": ["a", "b"], "valid": True, "node": "app1", "tier": "app", "item": "pool",
         "saturation": [0.0, 1.0], "utilization_mean_pct": [2.0, 8.0], "n": 60}
    )  # fmt: skip
    drawing = loads.pools(rows, 1.0)
    assert "full in 100 % of the run at 200 users" in drawing.finding
    assert drawing.figure.axes[0].lines[0].get_ydata().tolist() == [0.0, 100.0]
    assert "if a request waits" in drawing.caption
