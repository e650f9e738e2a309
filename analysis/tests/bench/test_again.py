"""What a user does who follows a verdict's advice, on the second family of known truth."""

from dataclasses import replace

import numpy as np
import pytest
from queueing import observe
from queueing.advised import asked
from queueing.again import Sweep, followed, more, table
from queueing.cases import Case, View
from queueing.model import Part, Step, System, Think
from queueing.variants import built

PARTS = (Part("front", 0, "cpu"), Part("front", 0, "pool:workers", "places", 8), Part("back", 0, "disk"))
SYSTEM = System(
    ("front", "back"), {"front": 1, "back": 1}, PARTS,
    (Step("enter", "front"), Step("serve", "front", "cpu", mean=0.02), Step("enter", "back"),
     Step("serve", "back", "disk", mean=0.01), Step("exit", "back"), Step("exit", "front")), Think(1.0),
)  # fmt: skip
VIEW = View(cpu_s=1.0, slow_s=1.0, noise_pct=0.0, gap_s=0.0, queues=False, cores=True, interactions=False)
CASE = Case("made", "made", built("single"), SYSTEM, (20.0, 60.0), 1.0, 4.0, 0.5, VIEW, 6)
"""Two loads of 40 and 120 nominal users. Its nodes are front1 and back1."""


def wanted(*texts, case=CASE):
    return asked(list(texts), case)


@pytest.fixture(scope="module")
def first():
    runs = [CASE.run(SYSTEM, n, 1.0, 4.0, 1, record=True) for n in CASE.users]
    return Sweep(CASE, runs, len(runs))


def test_sentences_are_followed_as_they_are_meant():
    found = wanted("add a load of 1 user: it tells service from waiting", "add loads of 17, 59 users",
                   "repeat the load of 8 users: whether it stands still again is not known")  # fmt: skip
    assert (found.loads, found.anew) == ([1, 17, 59, 8, 8], False)
    assert wanted("repeat u00, u01: invalid").trials == ["u00", "u01"]
    assert wanted("repeat the loads beyond the knee").repeat
    assert wanted("run the loads beyond the knee longer, or repeat them: they disagree").longer
    assert wanted("measure the CPU of front1").blind
    assert wanted("raise the workers of front by a step: throughput grows if it limits").steps == [PARTS[1].key]
    assert wanted("repeat with one more back node: throughput grows if its disk limits").steps == [PARTS[2].key]
    assert wanted("repeat with one more front node: throughput grows if its CPU limits").steps == [PARTS[0].key]
    seen = wanted("sample queue and waiting time of the disk of back1 (iostat: aqu-sz, await)",
                  "sample the CPUs ten times a second: turns", "record single interactions: they show")  # fmt: skip
    assert seen.view == {"queues": True, "cpu_s": 0.1, "interactions": True}
    assert seen.anew


def test_who_looks_what_fills_a_disk_finds_a_backup_or_the_requests_alone():
    text = (
        "find out what fills back1 disk at low load (pidstat -d): if not, repeat with a faster disk: throughput grows"
    )
    assert (wanted(text).end, wanted(text).steps) == ([], [("back", "disk")])
    busy = replace(SYSTEM, parts=(*PARTS[:2], replace(PARTS[2], batch=(10.0, 5.0, 0.1))))
    found = wanted(text, case=replace(CASE, system=busy))
    assert (found.end, found.steps) == ([("back", "disk")], [])


def test_what_the_model_cannot_do_is_told_apart():
    found = wanted("find out what back waits for when everything stands still (list the statements)")
    assert len(found.left) == 1
    assert not found.anything


def test_more_loads_come_beside_the_old_trials_and_other_samples_make_a_new_sweep(first):
    both = followed(first, [120], wanted("add a load of 60 users: why", "repeat the loads beyond the knee"))
    assert sorted(run.users for run in both.runs) == [20, 30, 60, 60, 60]
    assert (both.first, both.case) == (0, CASE)
    fresh = followed(first, [120], wanted("measure the CPU of front1", "run the loads beyond the knee longer: why"))
    assert [run.users for run in fresh.runs] == [20, 60]
    assert [run.end_s - run.ramp_s for run in fresh.runs] == pytest.approx([4.0, 180.0])
    assert fresh.first == len(both.runs), "its trials have other names, and other noise"
    names = set(observe.frames(fresh.case, fresh.runs, fresh.first)[0]["trial"])
    assert not names & set(observe.frames(CASE, first.runs)[0]["trial"])


def test_each_run_has_its_own_random_numbers(first):
    again = followed(first, [120], wanted("add loads of 120, 120 users"))
    ends = [run.done[:, 0] + run.done[:, 1] for run in again.runs[1:]]
    assert not np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[1], ends[2])


def test_a_control_has_one_more_load_below_the_highest(first):
    assert max(more(first).users) == 60
    assert len(more(first).users) == 3


def test_an_answer_of_the_first_round_stands_in_the_second():
    rounds = [("a", 1, "right"), ("b", 1, "unknown"), ("b", 2, "right"), ("c", 1, "unknown"), ("c", 2, "unknown")]
    lines = [{"of": of, "group": "abstained", "round": n, "outcome": what} for of, n, what in rounds]
    rows = [row for row in table(lines) if "although the truth can be told" in row]
    assert "1/3 = 0.333" in rows[0]
    assert "2/3 = 0.667" in rows[1]
