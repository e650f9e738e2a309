"""The study's claims are those of the thesis' tables; its page, of what was measured. (studies/tests has what holds of
every study.)"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest
from ntier_analysis.expectation.claims import read
from ntier_harness import campaign_spec
from ntier_harness.scale import auto_scale

STUDY = Path(__file__).resolve().parents[3] / "studies/two-phase-commit"
spec = importlib.util.spec_from_file_location("two_phase_page", STUDY / "page.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)


ALTERS = {
    (int(r["nodes"]), r["mode"], float(r["sleep_s"])): float(r["queries_per_s"]) - page.SELECTS / float(r["seconds"])
    for r in page.rows("thesis.csv")
}


@pytest.mark.parametrize("claim", read(STUDY / "claims.yaml"), ids=lambda claim: claim.name)
def test_a_claim_states_the_ratio_of_the_thesis_tables_and_holds_there(claim):
    """The numbers of the expectation's two sides, from tables 2 to 4; the claim must be true of the paper itself."""
    sides = re.findall(r"throughput\(([\d.]+) alter\) of two-phase-commit\.(\d)\.(\w+)", claim.parts[0][1])
    (upper, lower) = (ALTERS[int(nodes), mode, float(sleep)] for sleep, nodes, mode in sides)
    ratio = upper / lower
    assert float(re.search(r"\d+\.\d+", claim.paper)[0]) == pytest.approx(ratio, rel=0.03)
    op, bound = re.search(r"(<=|>=|<|within) ([\d.]+)", claim.parts[0][1]).groups()
    holds = {"<=": ratio <= float(bound), ">=": ratio >= float(bound), "<": ratio < float(bound),
             "within": abs(ratio - 1) <= float(bound) / 100}  # fmt: skip
    assert holds[op]


# ---- the page of a study that was measured in part -----------------------------------------------------------------


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A copy of the study in which nothing was measured yet."""
    copy = tmp_path / "study"
    shutil.copytree(STUDY, copy)
    for name in ("results.csv", "rates.csv", "limits.csv", "outcomes.csv"):
        (copy / name).unlink(missing_ok=True)
    monkeypatch.setattr(page, "HERE", copy)
    return copy


def trial(raw: Path, sweep: str, rep: int, alters: int, **more: object) -> None:
    """What the page reads of a valid trial; two alters and six selects a second."""
    _, nodes, mode, _ = sweep.split(".")
    folder = raw / sweep / f"sleep_s-1.r{rep:02d}"
    (folder / "clients/client1").mkdir(parents=True)
    phases = [{"name": "run", "start_s": 1.8e9, "end_s": 1.8e9 + 20}]
    told = {"topology": nodes, "sweep": sweep, "rep": rep, "scale": 0.2, "phases": phases, "soft_resources": {},
            "system": {"factor": {"value": 1.0}}, "validity": {"valid": True}}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(told | more))
    done = {"mode": mode, "seconds": 20.0, "selects": 120, "alters": alters, "statements": 61 * alters, "failed": 0,
            "queries_per_s": (120 + 61 * alters) / 20, "alter_ms": {"median": 30.0, "p99": 50.0}, "stale_ms": {},
            "late": 0, "state": {"converged": True, "broken": [], "stock": 0}}  # fmt: skip
    (folder / "clients/client1/work.json").write_text(json.dumps(done))
    beats = ["t_s,started,selects,alters", *(f"{s},{8 * s},{6 * s},{2 * s}" for s in range(21))]
    (folder / "clients/client1/progress.csv").write_text("\n".join(beats) + "\n")


def test_a_page_of_few_cells_says_of_the_others_that_they_were_not_measured(study, tmp_path):
    results = tmp_path / "results"
    (results / "store/trials").mkdir(parents=True)
    for rep, alters in enumerate((40, 44), 1):
        trial(results / "raw", "two-phase-commit.2.quorum.s0_2", rep, alters)
        trial(results / "raw", "two-phase-commit.2.acid.s0_2", rep, alters)
        trial(results / "raw", "two-phase-commit.1.base.anchor-claims", rep, alters)
    trial(results / "raw", "two-phase-commit.4.acid.s0_2", 1, 40, validity={"valid": False})
    trial(results / "raw", "two-phase-commit.1.base.selects-alone", 1, 0, soft_resources={"alter_threads": 0})
    page.main([str(results)])
    text = (study / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert "| 2 | acid | 1 | 344 | 81.54 | 134 ± 78 | 20.0 ± 0.0 | 2.10 ± 1.27 | 2 |" in rows
    nothing = "not measured | not measured | not measured | 0 |"
    assert f"| 4 | acid | 1 | 266 | 82.34 | {nothing}" in rows, "it is not valid"
    assert f"| 1 | base | 1 | 554 | 75.22 | {nothing}" in rows, "an anchor is no run of the thesis"
    assert "| 1 | selects alone |  | figure 26 |  | 6.0 | 20.0 | 0 | 1 |" in rows
    (quorum,) = (row for row in rows if row.startswith("| 2 | 1 | one node writes"))
    assert "| 134 ± 78 | 2.1 ± 1.3 | 30 ± 0 |" in quorum
    assert "| 2 | acid | here | not measured (runs at 1 sleep, 3 are needed) |  |  |  |" in rows
    assert "| claims | 2027-01-15 | 128, 140 |" in rows
    assert len([row for row in rows if row.endswith("**not measured** |")]) == len(read(STUDY / "claims.yaml"))
    assert "](rates.svg)" in text
    assert (study / "rates.csv").read_text().splitlines()[1].endswith(f",{' '.join(['6'] * 19)},{' '.join(['2'] * 19)}")
    before = (study / "README.md").read_text()
    shutil.rmtree(results / "raw")
    page.main([str(results)])
    assert (study / "README.md").read_text() == before, "what was measured on another day stays"


def test_no_empty_figure_is_drawn_before_a_run_has_told_its_rates(study):
    page.main([])
    assert "Rates over time: not measured yet." in (study / "README.md").read_text()
    assert not (study / "rates.svg").exists()


def test_the_law_gives_back_the_numbers_of_a_curve_that_follows_it():
    sleeps = [0.005, 0.05, 0.5, 1.0, 2.0]
    assert page.fit(sleeps, [8 * 61 / (s + 0.25) for s in sleeps])[:3] == ["61 ± 0", "0.25 ± 0.00", "1,952"]


def test_eight_nodes_are_compared_with_two_at_their_own_scale():
    file = STUDY / "eight-nodes.yaml"
    campaign = campaign_spec.parse(file.read_text(), str(file), STUDY.parents[1], 2)
    assert {(str(s.topology), s.mix.name) for s in campaign.sweeps} == {(n, m) for n in "28" for m in ("acid", "base")}
    assert {s.scale for s in campaign.sweeps} == {0.1}
    assert auto_scale(2, 8) == 0.1, "two cores carry no more"
