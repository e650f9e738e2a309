"""The report in short: the same numbers as the page, the verdict first, as text and as data."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest
from ntier_analysis import cli
from ntier_analysis.report import page, summary
from ntier_analysis.report.data import read_sweep
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from ntier_analysis.wording import counted, node_of, some_are
from typer.testing import CliRunner

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def found(report) -> dict:
    return summary.read(report.page)


def test_the_text_is_sentence_trials_advice_warnings_page_in_this_order(report, found):
    lines = summary.text(found).splitlines()
    markdown = (report.folder / "report.md").read_text()
    assert f"**{lines[0]}**" in markdown
    head = next(i for i, line in enumerate(lines) if line.startswith("trial "))
    rows = lines[head + 1 : head + 1 + len(report.loads)]
    assert [line.split()[1] for line in rows] == [f"{users:,}" for users in report.loads]
    assert ["INVALID: host_saturated" in line for line in rows] == [u == report.invalid for u in report.loads]
    assert "db1 CPU" in rows[-1]
    rest = lines[head + 2 + len(report.loads) :]
    advice = found["verdict"]["next"]
    assert advice
    assert rest[: len(advice)] == [f"next: {text}" for text in advice]
    rest = rest[len(advice) :]
    assert [line.partition(":")[0] for line in rest] == ["warning"] * len(found["warnings"]) + ["report"]
    assert "1 of 7 trials is INVALID" in rest[0]
    assert rest[-1] == f"report: {report.page}"


def test_the_data_are_those_of_the_store_and_of_the_stored_verdict(report, found):
    trials = read_table(report.store, "trials", report.sweep).sort_values("users")
    assert [t["throughput_per_s"] for t in found["trials"]] == trials["throughput_per_s"].tolist()
    ends = trials[["throughput_low_per_s", "throughput_high_per_s"]].to_numpy().tolist()
    assert [t["throughput_interval"] for t in found["trials"]] == ends
    assert [t["response_time_mean_ms"] for t in found["trials"]] == trials["response_time_mean_ms"].tolist()
    assert {t["hottest"]["node"] for t in found["trials"]} == {"db1"}
    verdict = as_json(verdicts(report.store, [report.sweep])[0])
    assert found["verdict"] == {k: v for k, v in verdict.items() if k != "trials"}


def test_a_trial_of_which_nothing_is_known_has_dashes_and_nulls(report):
    data = read_sweep(report.store, report.sweep)
    rates = [c for c in data.trials.columns if c.startswith(("throughput", "response_time"))]
    data.trials[rates] = float("nan")
    data.trials["users_real"] = pd.NA
    data = replace(data, saturation=data.saturation.iloc[:0])
    found = json.loads(summary.to_json(summary.summary(data))) | {"report": ""}
    assert {(t["throughput_per_s"], t["users_real"], t["hottest"]) for t in found["trials"]} == {(None, None, None)}
    assert summary.text(found).splitlines()[3].split()[2:] == ["–"] * 6


def test_of_a_fixed_amount_of_work_the_load_is_workers(report, found):
    data = read_sweep(report.store, report.sweep)
    work = replace(data, verdict=data.verdict | {"load_model": "work"})
    assert (data.load_name, work.load_name) == ("users", "workers")
    (facts,) = ({f["name"]: f["value"] for f in page._facts(d)} for d in [work])
    assert "Workers" in facts
    assert facts["Knee"].endswith(" workers")
    lines = summary.text(found | {"verdict": found["verdict"] | {"load_model": "work"}}).splitlines()
    assert any(line.split()[:2] == ["trial", "workers"] for line in lines)


def test_the_command_says_it_too(report, found, monkeypatch, tmp_path):
    monkeypatch.setattr("ntier_analysis.report.write_report", lambda store, name, out: report.page)
    monkeypatch.setattr("ntier_analysis.report.kept_report", lambda store, name, out: None)
    asked = ["report", report.sweep, "--store", str(report.store), "--out", str(tmp_path)]
    assert CliRunner().invoke(cli.app, asked).stdout == summary.text(found) + "\n"
    assert json.loads(CliRunner().invoke(cli.app, [*asked, "--json"]).stdout) == {"sweeps": [found]}


def test_one_is_singular():
    assert [counted(n, "core") for n in (0, 1, 2, 1.0, 0.2)] == ["0 cores", "1 core", "2 cores", "1 core", "0.2 cores"]
    assert [counted(n, "topology") for n in (1, 2)] == ["1 topology", "2 topologies"]
    assert counted(2, "day") == "2 days"
    said = [some_are(n, of, "trial") for n, of in ((1, 1), (1, 7), (3, 7))]
    assert said == ["1 of 1 trial is", "1 of 7 trials is", "3 of 7 trials are"]
    assert [node_of(tier) for tier in ("db", "node")] == ["db node", "node"]
