"""The study's claims are those of the thesis' tables; its page, of what was measured. (studies/tests has what holds of
every study.)"""

from __future__ import annotations

import heapq
import importlib.util
import json
import math
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from ntier_analysis.demo import SWEEP, unpack
from ntier_analysis.expectation.claims import read
from ntier_analysis.verdict.store import judge_again
from ntier_harness import campaign_spec

STUDY = Path(__file__).resolve().parents[3] / "studies/two-phase-commit"
sys.path.insert(0, str(STUDY))
import judging  # noqa: E402
import laws  # noqa: E402
import runs  # noqa: E402

spec = importlib.util.spec_from_file_location("two_phase_page", STUDY / "page.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)


ALTERS = {
    (int(r["nodes"]), r["mode"], float(r["sleep_s"])): float(r["queries_per_s"]) - page.SELECTS / float(r["seconds"])
    for r in runs.rows("thesis.csv")
}


@pytest.mark.parametrize("claim", read(STUDY / "claims.yaml"), ids=lambda claim: claim.name)
def test_a_claim_states_the_ratio_of_the_thesis_tables_and_holds_there(claim):
    """The numbers of the expectation's two sides, from tables 2 to 4; the claim must be true of the paper itself."""
    assert judging.FORM.fullmatch(claim.parts[0][1])
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
    for name in ("results.csv", "rates.csv", "limits.csv", "rates.svg", "laws.svg"):
        (copy / name).unlink(missing_ok=True)
    monkeypatch.setattr(runs, "HERE", copy)
    return copy


def trial(raw: Path, sweep: str, rep: int, alters: int, sleep: float = 1.0, at: float = 1.8e9, **more: object) -> None:
    """What the page reads of a valid trial; two alters and six selects a second."""
    _, nodes, mode, _ = sweep.split(".")
    folder = raw / sweep / f"sleep_s-{sleep:g}.r{rep:02d}"
    (folder / "clients/client1").mkdir(parents=True)
    phases = [{"name": "run", "start_s": at, "end_s": at + 20}]
    told = {"topology": nodes, "sweep": sweep, "rep": rep, "scale": 0.15, "phases": phases, "soft_resources": {},
            "system": {"factor": {"name": "sleep_s", "value": sleep}}, "validity": {"valid": True}}  # fmt: skip
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
        trial(results / "raw", "two-phase-commit.2.quorum.s0_15", rep, alters)
        trial(results / "raw", "two-phase-commit.2.acid.s0_15", rep, alters)
        trial(results / "raw", "two-phase-commit.1.base.anchor-claims", rep, alters)
    trial(results / "raw", "two-phase-commit.4.acid.s0_15", 1, 40, validity={"valid": False})
    trial(results / "raw", "two-phase-commit.1.base.selects-alone", 1, 0, soft_resources={"alter_threads": 0})
    page.main([str(results)])
    text = (study / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert "| 2 | acid | 1 | 344 | 81.54 | 134 ± 78 | 1.00 ± 0.58 | 20.0 ± 0.0 | 2.10 ± 1.27 | 2 | 1 |" in rows
    nothing = "not measured |  | not measured | not measured | 0 | 0 |"
    assert f"| 4 | acid | 1 | 266 | 82.34 | {nothing}" in rows, "it is not valid"
    assert f"| 1 | base | 1 | 554 | 75.22 | {nothing}" in rows, "an anchor is no run of the thesis"
    assert "| 1 | selects alone |  | figure 26 |  | 6.0 |  | 20.0 | 0 | 1 | 1 |" in rows
    (quorum,) = (row for row in rows if row.startswith("| 2 | 1 | one node writes"))
    assert "| 134 ± 78 | 2.1 ± 1.3 | 30 ± 0 |" in quorum
    assert f"| 2 | acid | here | not measured (runs at 1 sleep, 3 are needed) |{'  |' * 8}" in rows
    assert "| 2027-01-15 | not known | claims | 128, 140 | 30.0, 30.0 |" in rows
    assert "Not measured yet: 14 of 16 such rows." in text
    assert "Of the thesis' 25 runs 1 were made here at least once, and 0 at least 5 times." in text
    assert len([row for row in rows if row.endswith("**not measured** |")]) == len(read(STUDY / "claims.yaml"))
    assert "](rates.svg)" in text
    assert (study / "rates.csv").read_text().splitlines()[1].endswith(f",{' '.join(['6'] * 19)},{' '.join(['2'] * 19)}")
    before = (study / "README.md").read_text()
    shutil.rmtree(results / "raw")
    page.main([str(results)])
    assert (study / "README.md").read_text() == before, "what was measured on another day stays"


ACID = "two-phase-commit.2.acid.s0_15"


def test_runs_of_several_machines_and_days_are_kept_side_by_side_and_judge_a_claim_together(study, tmp_path):
    """The second machine is twice as fast. On both, 0.1 s has about three times the alters of 1 s."""
    old = ("nodes,mode,sleep_s,block,rep,scale,day,seconds,selects,alters,statements,failed,queries_per_s,alters_per_s,"
           "alter_ms,alter_p99_ms,stale_ms,stale_p99_ms,late,stock,converged,broken",
           "2,acid,1.0,s0_15,1,0.15,2026-11-24,62.015,4800,453,27633,0,522.99,7.305,,,,,,0,True,")  # fmt: skip
    (study / "results.csv").write_text("\n".join(old) + "\n")
    for number, (model, speed, at) in enumerate((("slow", 1, 1.8e9), ("fast", 2, 1.8e9 + 5))):
        raw = tmp_path / f"raw{number}"
        host = {"cores": 2, "facts": {"cpu_model": model}}
        for rep, (short, long) in enumerate(((60, 20), (66, 20), (60, 19)), 1):
            trial(raw, ACID, rep, short * speed, 0.1, at, host=host)
            trial(raw, ACID, rep, long * speed, 1.0, at, host=host)
        for _ in range(2):  # the second time nothing new
            runs.collect(raw)
    kept = runs.rows("results.csv")
    assert len(kept) == 1 + 2 * 6 == len({runs.run_of(row) for row in kept})
    assert [row["alters_per_s"] for row in kept if row["day"] == "2026-11-24"] == ["7.305"]
    (claim,) = (row for row in page.claims().splitlines() if "(2 nodes) | 5.1" in row)
    assert "of 6 runs and 6 runs, each compared within one of 2 machines and days" in claim
    assert claim.endswith("**differs** |"), "2.5 times at most are claimed"
    assert len(runs.rows("rates.csv")) == 2 * 6


def test_what_limits_is_kept_by_sweep_day_and_machine(study, tmp_path, monkeypatch):
    """With the measured sweep that comes with the program in the place of the study's."""
    monkeypatch.setattr(runs, "sweeps", lambda _: [SWEEP])
    monkeypatch.setattr(runs, "SYSTEM", SWEEP.partition(".")[0])
    results = tmp_path / "results"
    judge_again(unpack(results), [])
    for name in ("one", "another", "another"):
        (results / "machine").write_text(name)
        runs.collect_limits(results)
    found = runs.rows("limits.csv")
    assert [(row["sweep"], row["machine"]) for row in found] == [(SWEEP, "another"), (SWEEP, "one")]
    assert len({(row["day"], row["at"], row["limits"]) for row in found}) == 1
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", found[0]["day"])
    assert len(found[0]["at"].split()) == 13, "all loads of the paper"
    assert f"| {' | '.join(found[0].values())} |" in page.limits().splitlines()


def test_two_machines_of_one_model_are_two_if_one_is_named(study, tmp_path):
    for number, name in enumerate(("", "the second\n")):
        results = tmp_path / str(number)
        trial(results / "raw", ACID, 1, 40, at=1.8e9 + number, host={"cores": 2, "facts": {"cpu_model": "slow"}})
        if name:
            (results / "machine").write_text(name)
        runs.collect(results / "raw")
    assert [row["machine"] for row in runs.rows("results.csv")] == ["2 x slow", "the second"]
    assert len(set(map(runs.occasion, runs.rows("results.csv")))) == 2


def test_a_ratio_is_taken_within_each_machine_and_day():
    """The fast machine has run one cell more often: a ratio of plain means would be 4.4."""
    slow, fast = [("slow", 10.0)], [("fast", 40.0)] * 3
    found = judging.ratio([*slow, *fast, ("alone", 7.0)], [("slow", 5.0), ("slow", 5.2), ("fast", 20.1)])
    assert found.value == pytest.approx(2.0, rel=0.03)
    assert 1.8 < found.low < found.value < found.high < 2.2
    assert judging.ratio(slow, [("slow", 5.0)]).low is None, "one run each tells no interval"
    assert math.isnan(judging.ratio(slow, [("fast", 5.0)]).value)


SIDES = "ratio(throughput(0.1 alter) of a, throughput(1 alter) of b)"


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        (">= 1.5", "holds"),
        (["<= 2.5", ">= 1.5"], "holds"),
        ([">= 1.5", ">= 3"], "differs"),
        ([">= 1.5", ">= 2.1"], "undecided"),
        (">= 2.1", "differs"),
        ([">= 1.5", "within 5 %"], "differs"),
    ],
    ids=str,
)
def test_a_claim_may_have_several_parts(tmp_path, expected, outcome):
    """2.1 lies beyond the interval of one ratio, and not beyond that of one of two."""
    texts = [f"{SIDES} {e}" for e in ([expected] if isinstance(expected, str) else expected)]
    one = {"says": "s", "place": "p", "paper": "q"}
    file = tmp_path / "claims.yaml"
    file.write_text(json.dumps({"c": one | {"sweep": "a", "expect": texts}, "open": one | {"unjudged": "because"}}))
    measured = {
        ("a", 0.1): [("here", v) for v in (10.0, 10.1, 9.95)],
        ("b", 1.0): [("here", v) for v in (5.0, 5.15, 4.9)],
    }
    found, unjudged = judging.judge(read(file), lambda sweep, sleep: measured[sweep, sleep])
    assert (found.judged, unjudged.judged) == (outcome, "not judged")


def test_delays_and_sizes_stand_apart(study, tmp_path):
    there = {"sleep_s": 0.1, "transfers": 30, "delay_ms": 0.0}
    for rep, (block, name, value) in enumerate(
        (("delays", "delay_ms", 0.0), ("delays", "delay_ms", 5.0), ("alters", "transfers", 100.0)), 1
    ):
        factor = {"factor": {"name": name, "value": value}}
        trial(tmp_path / "raw", f"two-phase-commit.2.acid.{block}", rep, 40, soft_resources=there, system=factor)
    runs.collect(tmp_path / "raw")
    assert [row["set"] for row in runs.rows("results.csv")] == ["transfers=100", "", "delay_ms=5"]
    text = page.page()
    assert "| 2 | acid | 0 | 0 | 2.0 | 30.0 | 0 | 0 | 1 | 1 |" in text
    assert "| 2 | acid | 5 | not measured | 2.0 | 30.0 | 0 | not measured | 1 | 1 |" in text
    assert "| 100 transfers in an alter | 2 | acid | 2.0 | 122 | 30.0 | 0 | 1 | 1 |" in text
    assert [len(cell) for cell in runs.measured()[2, "acid"].values()] == [1], "with the usual settings"


def test_no_empty_figure_is_drawn_before_a_run_has_told_its_rates(study):
    page.main([])
    assert "Rates over time: not measured yet." in (study / "README.md").read_text()
    assert not (study / "rates.svg").exists()


SLEEPS = [0.005, 0.05, 0.5, 1.0, 2.0]


def test_a_law_gives_back_the_numbers_of_a_curve_that_follows_it():
    told = laws.columns(SLEEPS, [8 * 61 / (s + 0.25) for s in SLEEPS])
    assert told[:5] == ["5", "61 ± 0", "0.25 ± 0.00", "1,952", "0 %"]
    told = laws.columns(SLEEPS, list(laws.queue(np.array(SLEEPS), 0.02, 0.05)))
    assert told[5:] == ["0.020 ± 0.000", "0.050 ± 0.000", "3,050", "0 %"]


def test_threads_that_queue_are_as_in_a_simulation():
    """Eight threads draw their times (exponential) and take turns at one server."""
    draw, sleep, work, wait = np.random.default_rng(5), 0.1, 0.02, 0.03
    free, done, until = 0.0, 0, 4000.0
    ready = [(draw.exponential(sleep), n) for n in range(laws.THREADS)]
    heapq.heapify(ready)
    while ready[0][0] < until:
        now, thread = heapq.heappop(ready)
        free = max(free, now) + draw.exponential(work)
        done += 1
        heapq.heappush(ready, (free + draw.exponential(sleep) + draw.exponential(wait), thread))
    (law,) = laws.queue(np.array([sleep]), work, wait)
    assert done * laws.STATEMENTS / until == pytest.approx(law, rel=0.01)


def test_laws_are_drawn_once_there_are_more_sleeps_than_the_thesis_has(study, tmp_path):
    for number, sleep in enumerate((0.02, 0.1, 0.5, 1.0, 1.5)):
        trial(tmp_path / "raw", "two-phase-commit.2.acid.law", 1, int(160 / (sleep + 0.3)), sleep, 1.8e9 + number)
    runs.collect(tmp_path / "raw")
    page.main([])
    assert "More sleeps than the thesis': not measured yet." in (study / "README.md").read_text()
    trial(tmp_path / "raw", "two-phase-commit.2.acid.law", 1, 70, 2.0)
    runs.collect(tmp_path / "raw")
    page.main([])
    assert "](laws.svg)" in (study / "README.md").read_text()
    assert "2 nodes, ACID" in (study / "laws.svg").read_text()


def test_eight_nodes_are_compared_with_two_at_their_own_scale():
    file = STUDY / "eight-nodes.yaml"
    campaign = campaign_spec.parse(file.read_text(), str(file), STUDY.parents[1], 2)
    assert {(str(s.topology), s.mix.name) for s in campaign.sweeps} == {(n, m) for n in "28" for m in ("acid", "base")}
    assert {s.scale for s in campaign.sweeps} == {0.1}, "two cores carry no more"
    assert {s.name.rpartition(".")[2] for s in campaign.sweeps} == {page.EIGHT}
