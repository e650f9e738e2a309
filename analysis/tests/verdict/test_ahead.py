"""CPUs that are full while requests pile up: they may work for those, and need not limit."""

from dataclasses import replace

import pytest
from ntier_analysis.verdict.sweep import judge_sweep

from .test_rules import idle, saturation, trial


@pytest.mark.parametrize(("response_s", "verdict"), [(3.0, "unknown"), (5.5, "single")])
def test_a_full_cpu_may_work_for_requests_that_pile_up(response_s, verdict):
    """At low load 4.3/s use 20 % of the database, so 8/s need 38 %. It is full: requests for another 12/s pass it. If
    they are all answered (100 users, 8/s, 12.5 s), it limits: work has become dearer. If a fifth of the users is
    missing in the answers, they may wait behind it."""
    free = [trial(n, n / 10 / 7.05, 0.05, None) for n in (200, 300)]
    found = judge_sweep("s", "1/1/1/1M", [*free, trial(1000, 8.0, response_s, "db1")], 0.1)
    assert found.verdict == verdict
    assert any("works for requests that pile up" in text for text in found.trials[-1][1].evidence) == (
        verdict == "unknown"
    )


@pytest.mark.parametrize("near_pct", [(60.0,), (93.0,), (50.0, 50.0, 93.0)], ids=str)
def test_a_load_near_the_knee_does_not_tell_what_is_completed_needs_of_a_full_cpu(near_pct):
    """By the lowest loads 8/s need 57 % of the database at most. One of 7.8/s uses more of it, in one of its runs or in
    each: work may be dearer there, or another program runs beside it, or requests already pile up."""
    free = [trial(n, n / 10 / 7.05, 0.05, None) for n in (200, 300)]
    near = [trial(550, 7.8, 0.05, None) for _ in near_pct]
    near = [
        replace(
            t,
            load=replace(t.load, trial=f"u00550.r0{n}"),
            saturations=[*idle("web1", "app1"), saturation("db1", 0.2, mean=pct)],
        )
        for n, (t, pct) in enumerate(zip(near, near_pct, strict=True), start=1)
    ]
    found = judge_sweep("s", "1/1/1/1M", [*free, *near, trial(1000, 8.0, 3.0, "db1")], 0.1)
    assert found.verdict == "unknown"


@pytest.mark.parametrize(
    ("costs_pct", "verdict"),
    [
        ((11.0, 11.0, 11.0, 11.0, 11.0, 11.0), "unknown"),
        ((12.1, 11.0, 11.0, 11.0, 11.0, 11.0), "unknown"),
        ((11.0, 11.0, 11.0, 12.1, 11.0, 11.0), "unknown"),
        ((12.1, 12.1, 12.1, 12.1, 12.1, 12.1), "single"),
        ((10.9, 12.1, 12.1, 12.1, 12.1, 12.1), "single"),
    ],
)
def test_what_is_completed_needs_of_a_full_cpu_is_told_by_all_low_runs_and_not_by_the_dearest(costs_pct, verdict):
    """Of 1/s, %, in three runs of each of two low loads: 8/s need 88 or 97 % of the database, and it is used 100 %."""
    free = []
    for n, cost in enumerate(costs_pct):
        t = trial(200 + 100 * (n // 3), (20 + 10 * (n // 3)) / 7.05, 0.05, None)
        used = saturation("db1", 0.2, mean=cost * t.load.throughput_per_s)
        run = replace(t.load, trial=f"{t.load.trial}{n}")
        free.append(replace(t, load=run, saturations=[*idle("web1", "app1"), used]))
    found = judge_sweep("s", "1/1/1/1M", [*free, trial(1000, 8.0, 3.0, "db1")], 0.1)
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("first_s", "verdict"), [(5.5, "single"), (4.2, "unknown")], ids=["the first has settled", "none has settled"]
)
def test_work_that_is_dearer_beyond_the_knee_is_not_done_for_requests_that_pile_up(first_s, verdict):
    """By low loads 8/s need 88 % of the database. Beyond the knee, with three numbers of users, they use all of it. At
    the second and third a tenth of the users is missing in the answers. If none is at the first (100 users, 8/s, 12.5
    s), then 8/s need all of the database there, and so at the others."""
    free = []
    for n in (200, 300):
        t = trial(n, n / 10 / 7.05, 0.05, None)
        used = saturation("db1", 0.2, mean=11 * t.load.throughput_per_s)
        free.append(replace(t, saturations=[*idle("web1", "app1"), used]))
    beyond = [trial(n, 8.0, r, "db1") for n, r in ((1000, first_s), (1200, 6.5), (1300, 7.6))]
    assert judge_sweep("s", "1/1/1/1M", [*free, *beyond], 0.1).verdict == verdict
