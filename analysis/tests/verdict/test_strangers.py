"""Data that others bring: samples of many seconds, users who were not there throughout."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.statistics.laws import dependence
from ntier_analysis.statistics.share import saturation_share
from ntier_analysis.verdict.coverage import by_chance
from ntier_analysis.verdict.saturation import THRESHOLDS
from ntier_analysis.verdict.sweep import judge_sweep

from .test_principles import CELLS, NODES, RUN_S, limited, named, resource, trial


def scraped(node, values, name="cpu"):
    """Read every few seconds: so much in each."""
    values = np.asarray(values, float)
    marks, step = (values >= 95).astype(float), RUN_S / len(values)
    shares = dict.fromkeys(THRESHOLDS, saturation_share(marks, step))
    return replace(resource(node, mean=values.mean(), name=name), shares=shares, interval_s=step, indicator=marks,
                   values=values)  # fmt: skip


def said(found, text):
    return any(text in line for line in [*found.evidence, *(e for _, v in found.trials for e in v.evidence)])


# ---- samples of many seconds ---------------------------------------------------------------------------------------

EVEN = np.tile([1.0, -1.0], 6)


@pytest.mark.parametrize("samples", [12, 60])
def test_two_that_together_are_always_used_may_take_turns_that_coarse_samples_do_not_show(samples):
    """Turns of two seconds, read every five (or of half a second, every second): 54 and 52 % in each sample."""
    even = np.resize(EVEN, samples)
    found = limited(scraped("db1", 54 + even), scraped("app1", 52 - even))
    assert (found.verdict, named(found)) == ("unknown", [])
    assert said(found, "are used 106 % together, sampled every")
    assert said(found, "they may take turns shorter than that")


@pytest.mark.parametrize(
    ("db", "app"),
    [
        (np.where(np.arange(12) % 3 == 0, 40.0, 70.0), 40 + EVEN),  # 80 % together in a third of the samples
        (75 + EVEN, 9 + EVEN),  # the second one never leaves the first too little
        (40 + EVEN, 40 + EVEN),
    ],
)
def test_two_that_leave_time_to_which_neither_is_used_take_no_turns(db, app):
    assert limited(scraped("db1", db), scraped("app1", app)).verdict == "hidden"


def test_fine_samples_would_show_turns():
    even = np.resize(EVEN, CELLS)
    fine = [replace(resource(n, mean=m), values=m + even) for n, m in (("db1", 54), ("app1", 52))]
    assert limited(*fine).verdict == "hidden"


def test_fine_samples_beside_coarse_ones_would_show_turns():
    """The CPU is never saturated in a tenth of a second, so the disk is not idle meanwhile either."""
    fine = replace(resource("db1", mean=54), values=54 + np.resize(EVEN, CELLS))
    assert limited(fine, scraped("db1", np.resize(52 - EVEN, 60), "disk")).verdict == "hidden"
    on = np.arange(CELLS) % 50 < 27
    turning = replace(resource("db1", on, 54), values=np.where(on, 100.0, 0.0))
    assert limited(turning, scraped("db1", np.resize(47 - EVEN, 12), "disk")).verdict == "unknown"


def test_one_disk_and_what_stands_on_it_take_no_turns():
    stacked = [replace(scraped("db1", 60 + EVEN, "disk"), item=item) for item in ("sda", "dm-0")]
    assert limited(*stacked).verdict == "hidden"


@pytest.mark.parametrize(("samples", "db", "app"), [(12, 8, 5), (24, 16, 16)])
def test_few_samples_of_two_leave_no_gap_by_chance(samples, db, app):
    """One reads full in the first of them, the other in the last, and never neither. So do 8 and 6 % of the pairs that
    know nothing of each other, of which each sweep has many."""
    at = np.arange(samples)
    order = np.random.default_rng(2026112903).permutation(samples)
    first, last = (np.where(marks[order], 98.0, 40.0) for marks in (at < db, at >= samples - app))
    found = limited(scraped("db1", first), scraped("app1", last))
    assert (found.verdict, named(found)) == ("unknown", [])


def test_few_samples_of_two_replicas_leave_no_gap_by_chance():
    """As above; more of their tier need not help."""
    at = np.random.default_rng(2026112904).permutation(24)
    some = [scraped("db1", np.where(at < 16, 98.0, 40.0)), scraped("db2", np.where(at >= 8, 98.0, 40.0))]
    found = limited(*some, nodes=NODES | {"db2": "db"})
    assert (found.verdict, named(found)) == ("unknown", [])


@pytest.mark.parametrize(("samples", "chance"), [(12, True), (600, False)])
def test_how_small_a_gap_is_chance_depends_on_how_many_samples_leave_it(samples, chance):
    at = np.arange(CELLS) / CELLS
    marks = np.array([at < 0.7, at >= 0.3]).astype(float)
    assert by_chance(marks, samples) == chance


def test_turns_of_whole_samples_are_seen_in_few_of_them():
    """Half of the samples each, and never both: one in 900 such pairs."""
    half = np.arange(24) % 2 == 0
    found = limited(scraped("db1", np.where(half, 99, 40)), scraped("app1", np.where(half, 40, 99)))
    assert (found.kind, named(found)) == ("alternating", [("app", "cpu"), ("db", "cpu")])


def test_turns_that_leave_gaps_are_told_by_how_seldom_both_are_saturated():
    """Each in 21 of 60 samples, and never both: of unrelated ones both would be in 7. How often neither is, in 18, is
    no matter then."""
    at = np.random.default_rng(2026112905).permutation(60)
    found = limited(scraped("db1", np.where(at < 21, 99, 40)), scraped("app1", np.where(at >= 39, 99, 40)))
    assert (found.kind, named(found)) == ("alternating", [("app", "cpu"), ("db", "cpu")])


# ---- users who were not there throughout ---------------------------------------------------------------------------


def served(users, share, x=20.0):
    """The database is full, and the load generator stops after a share of the run."""
    marks = np.arange(CELLS) < share * CELLS
    cpu = resource("db1", marks, 100 * share + 1)
    made = trial(users, share * x, users / x - 7, cpu)
    done = np.linspace(0.0, share * RUN_S, round(share * x * RUN_S), endpoint=False)
    spans = np.column_stack([done - made.load.response_s, done])
    return replace(made, load=replace(made.load, done_s=done, spans=spans))


@pytest.mark.parametrize(("share", "at_least"), [(1.0, False), (0.75, True)])
def test_a_maximum_of_users_who_were_not_there_throughout_is_a_lower_bound(share, at_least):
    """15/s on average, of a database that completes 20."""
    free = [trial(n, n / 7.02, 0.02, resource("db1", mean=5 * n / 7.02)) for n in (30, 60)]
    found = judge_sweep("s", "1/1/1/1M", [*free, *(served(n, share) for n in (190, 200, 220))])
    assert (found.at_least, named(found)) == (at_least, [("db", "cpu")])
    assert said(found, "the answers account for 75 % of the users") == at_least


def test_a_load_whose_users_were_not_all_there_does_not_lower_the_maximum():
    """15/s by the load generator that stopped, 20 by three others."""
    free = [trial(n, n / 7.02, 0.02, resource("db1", mean=5 * n / 7.02)) for n in (30, 60)]
    found = judge_sweep("s", "1/1/1/1M", [*free, *(served(n, 1.0) for n in (200, 210, 230)), served(220, 0.75)])
    assert (found.at_least, named(found)) == (False, [("db", "cpu")])
    assert found.max_throughput.value == pytest.approx(20.0, rel=0.01)
    assert said(found, "u00220 (75 %) not counted for the maximum")
    assert found.plateau_users == (200, 210, 230)


def test_dependence_of_few_samples_is_not_known_to_be_none():
    assert np.isnan(dependence(np.ones(12), np.ones(12), 5.0).lift)
