"""The rules of the verdict on values made by hand: several replicas, gaps, migration, loads that do not suffice."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.statistics.share import saturation_share
from ntier_analysis.verdict.agreement import combine, migrations
from ntier_analysis.verdict.context import Context
from ntier_analysis.verdict.coverage import mean_known
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.demands import law_limits
from ntier_analysis.verdict.load import Bottleneck, Load, Verdict
from ntier_analysis.verdict.saturation import THRESHOLDS, Saturation, saturations
from ntier_analysis.verdict.sweep import judge_sweep
from ntier_analysis.verdict.trial import judge_trial

NODES = {"web1": "web", "app1": "app", "middleware1": "middleware", "db1": "db"}
RUN_S = 60.0


def saturation(node, share, resource="cpu", item="", mean=None, interval_s=0.1, tier=None):
    """A resource that is saturated in the first part of the run."""
    n = round(RUN_S / interval_s)
    marks = (np.arange(n) < share * n).astype(float)
    return Saturation(
        node=node,
        tier=tier or node.rstrip("0123456789"),
        resource=resource,
        item=item,
        source="cgroup",
        shares=dict.fromkeys(THRESHOLDS, saturation_share(marks, interval_s)),
        utilization_mean_pct=100 * share if mean is None else mean,
        utilization_p95_pct=100 * share,
        interval_s=interval_s,
        indicator=marks,
    )


def load(response_s=3.0, users=1000, throughput=10.0, **options):
    rates = np.random.default_rng(users).normal(throughput, 0.3, 10)
    rate = float(rates.mean())
    return Load(f"u{users:05d}.r01", users, users / 10, rate, response_s, 7.0, 0.0, RUN_S, True, rates=rates, **options)


def idle(*nodes):
    return [saturation(n, 0.0, mean=20.0) for n in nodes]


def judged(found, nodes=NODES, **options):
    return judge_trial(load(**options), found, nodes, 0.05)


def test_t9_one_hot_replica_is_named_not_its_tier():
    nodes = NODES | {"db2": "db", "db3": "db"}
    found = [*idle("web1", "app1", "middleware1", "db2", "db3"), saturation("db1", 1.0, mean=100)]
    v = judged(found, nodes)
    assert v.bottlenecks[0].nodes == ("db1",)
    assert any(text == "imbalance: db1 saturates while db2 20 %, db3 20 % has room" for text in v.evidence)


def test_all_replicas_of_a_tier_are_one_bottleneck():
    nodes = NODES | {"db2": "db"}
    found = [*idle("web1", "app1", "middleware1"), saturation("db1", 1.0), saturation("db2", 0.9)]
    v = judged(found, nodes)
    assert (v.verdict, v.bottlenecks[0].nodes) == ("single", ("db1", "db2"))
    assert v.bottlenecks[0].saturation == pytest.approx(0.95)
    assert not any("imbalance" in text for text in v.evidence)


def test_without_cpu_samples_of_a_server_nothing_is_called_hidden():
    """T15: a resource nobody measured must not make the next-hottest one guilty, nor prove that there is no cause."""
    v = judged(idle("web1", "app1", "middleware1"))
    assert v.verdict == "unknown"
    assert any("no (complete) CPU samples of db1" in text for text in v.evidence)
    assert judged(idle(*NODES)).verdict == "hidden"


def test_coarse_samples_ask_for_finer_ones():
    v = judged([saturation(n, 0.0, mean=60, interval_s=1.0) for n in NODES])
    assert v.verdict == "hidden"
    assert any("sample finer" in text for text in v.evidence)


def test_gaps_make_a_node_unmeasured():
    t = np.concatenate([np.arange(0.05, 20, 0.1), np.arange(40.05, 60, 0.1)])
    samples = pd.DataFrame({"t_s": t, "value": 30.0}).assign(
        node="db1", tier="db", resource="cpu", item="", metric="utilization_pct", source="cgroup"
    )
    found = saturations(samples, 0.0, RUN_S)
    assert found[0].share.missing == pytest.approx(200, abs=2)
    v = judged([*idle("web1", "app1", "middleware1"), *found])
    assert v.verdict == "unknown"


def test_small_wait_is_no_limit():
    assert judged(idle(*NODES), response_s=0.3).verdict == "none"


def test_second_resource_that_saturates_now_and_then_is_no_multi():
    found = [*idle("web1", "middleware1"), saturation("db1", 1.0), saturation("app1", 0.3)]
    v = judged(found)
    assert (v.verdict, [b.tier for b in v.bottlenecks]) == ("single", ["db"])
    assert any("app1 cpu" in text for text in v.evidence)


def test_two_that_saturate_together_are_simultaneous():
    v = judged([*idle("web1", "middleware1"), saturation("db1", 1.0), saturation("app1", 0.97)])
    assert (v.verdict, v.kind) == ("multi", "simultaneous")
    assert [b.tier for b in v.bottlenecks] == ["db", "app"]


def test_invalid_trial_has_no_verdict():
    trial = replace(load(), valid=False, invalid_reasons="generator_lag")
    v = judge_trial(trial, [saturation("app1", 1.0)], NODES, 0.05)
    assert (v.verdict, v.bottlenecks) == ("unknown", [])
    assert "at best a lower bound" in v.evidence[0]


def test_busy_host_and_client_are_never_bottlenecks():
    """Nor is anything hidden in the system, while they may hold up the users."""
    for more in (saturation("host", 1.0, tier="host"), saturation("client1", 1.0, tier="client")):
        v = judged([*idle(*NODES), more])
        assert (v.verdict, v.bottlenecks) == ("unknown", [])


@pytest.mark.parametrize(
    ("times", "base_s", "verdict"),
    [(1.05, 0.05, "hidden"), (1.3, 0.05, "unknown"), (1.05, 1.5, "hidden"), (1.3, 1.5, "none")],
)
def test_what_a_higher_load_outdoes_is_not_held_up_by_something_hidden(times, base_s, verdict):
    """Waiting costs 30 or 15 %."""
    context = Context(outdone={"u01000.r01": times})
    assert judge_trial(load(), idle(*NODES), NODES, base_s, context).verdict == verdict


@pytest.mark.parametrize(("level", "verdict"), [(10.5, "hidden"), (9.0, "unknown")])
def test_a_load_that_serves_more_than_the_others_uses_more_than_they_do_on_average(level, verdict):
    """At 9/s the database is used up to 84 %; so at 10/s it may be used 93 %."""
    busy = saturation("db1", 0.1, mean=76.0)
    context = Context(most_pct={busy.key: 84.0}, level=level)
    found = [*idle("web1", "app1", "middleware1"), busy]
    assert judge_trial(load(), found, NODES, 0.05, context).verdict == verdict


# ---- sweeps --------------------------------------------------------------------------------------------------------


def trial(users, throughput, response_s, hot, **options):
    found = [*idle(*(n for n in NODES if n != hot)), saturation(hot, 1.0)] if hot else idle(*NODES)
    return TrialData(load(response_s, users, throughput, **options), found, NODES)


def test_few_loads_beyond_the_knee_give_at_least():
    low = replace(trial(400, 5.6, 0.1, None), saturations=[*idle("web1", "app1"), saturation("db1", 0.0, mean=56.0)])
    found = judge_sweep("s", "1/1/1/1M", [low, trial(1000, 10.0, 3.0, "db1")], 0.1)
    assert found.at_least
    assert not found.knee_bracketed
    assert found.verdict == "single"


@pytest.mark.parametrize(
    ("slow_s", "beyond"), [(0.5, ()), (0.8, (600, 600, 600))], ids=["the mean is below", "the mean is above"]
)
def test_the_mean_of_its_repetitions_says_whether_a_load_is_limited(slow_s, beyond):
    """Waiting costs 4.1 % in two of three runs and 6 or 9.6 % in the third. The worst run alone would not say what the
    load does, and would give a maximum that is too low."""
    each = [trial(600, 60 / (7 + r), r, None) for r in (0.35, 0.35, slow_s)]
    repeated = [replace(t, load=replace(t.load, trial=f"u00600.r0{n}")) for n, t in enumerate(each, start=1)]
    found = judge_sweep("s", "1/1/1/1M", [trial(200, 20 / 7.05, 0.05, None), *repeated], 0.1)
    assert (found.plateau_users or ()) == beyond
    assert found.verdict == "none", "throughput still grows"


def test_two_trials_that_differ_much_give_the_maximum_no_interval():
    """By Student's t with one degree of freedom 1.6 and 2.05/s would give 0.00 to 4.68: that bounds nothing. A third
    trial does."""
    free = trial(40, 0.55, 0.05, None)
    two = [trial(200, 2.05, 2.8, "app1"), trial(300, 1.6, 11.8, "app1")]
    found = judge_sweep("s", "1/1/1/1M", [free, *two], 0.1)
    assert found.at_least
    assert np.isnan([found.max_throughput.low, found.max_throughput.high, *found.knee_interval]).all()
    assert any("differ too much to bound the maximum" in text for text in found.evidence)
    assert any(text.startswith("repeat the loads beyond the knee (REPS=3): 2 trials") for text in found.next)
    more = judge_sweep("s", "1/1/1/1M", [free, *two, trial(250, 1.8, 6.9, "app1")], 0.1)
    assert 0 < more.max_throughput.low < 1.8 < more.max_throughput.high
    assert not any("differ too much" in text for text in more.evidence)


def test_migration_from_app_to_db():
    trials = [
        trial(400, 5.6, 0.1, None),
        trial(1000, 10.0, 3.0, "app1"),
        trial(1200, 10.0, 5.0, "app1"),
        trial(1400, 10.0, 7.0, "db1"),
    ]
    found = judge_sweep("s", "1/1/1/1M", trials, 0.1)
    assert found.migration == [
        {
            "from_users": 1200,
            "to_users": 1400,
            "from": {"tier": "app", "resource": "cpu"},
            "to": {"tier": "db", "resource": "cpu"},
        }
    ]
    assert migrations([]) == []


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ((1.0, 0.1), (1.0, 1.0), ("app", "db")),
        ((1.0, 1.0), (0.1, 1.0), ("app", "db")),
        ((1.0, 0.1), (0.5, 1.0), ("app", "app db")),
    ],
)
def test_a_bottleneck_moves_only_if_what_limited_no_longer_does_and_something_else_now_does(before, after, names):
    """Shares of application and database at two loads, and what is named at each: chance names the other of two that
    are full alike; and what limits beside another has not moved."""
    limited = []
    for users, shares, named in zip((1000, 1200), (before, after), names, strict=True):
        found = [saturation(n, share) for n, share in zip(("app1", "db1"), shares, strict=True)]
        bottlenecks = [
            Bottleneck(s.tier, "cpu", (s.node,), s.share.value, s.share.low, s.share.high)
            for s in found
            if s.tier in named
        ]
        at = replace(trial(users, 10.0, users / 100 - 7, None), saturations=found)
        limited.append((at, Verdict("single" if len(bottlenecks) == 1 else "multi", "stable", bottlenecks)))
    assert migrations(limited) == []


@pytest.mark.parametrize(("silent", "moves"), [(None, 1), (0, 0), (1, 0)])
def test_what_was_not_measured_at_a_load_has_not_fallen_there(silent, moves):
    """`silent`: the load at which only what limits was measured."""
    limited = []
    for i, (users, hot) in enumerate(((1000, "app1"), (1200, "db1"))):
        found = [saturation(n, 1.0 if n == hot else 0.1) for n in ("app1", "db1") if n == hot or i != silent]
        top = next(s for s in found if s.node == hot)
        bottleneck = Bottleneck(top.tier, "cpu", (hot,), top.share.value, top.share.low, top.share.high)
        at = replace(trial(users, 10.0, users / 100 - 7, None), saturations=found)
        limited.append((at, Verdict("single", "stable", [bottleneck])))
    assert len(migrations(limited)) == moves


@pytest.mark.parametrize(("highest", "one"), [((1000,), True), ((1000, 1400, 1800), False)])
def test_the_maximum_says_what_its_interval_is_about(highest, one):
    """Simulated intervals of short runs held the long run's mean less often than 95 %, those of one trial the next
    trial's: the evidence says so."""
    trials = [trial(300, 4.2, 0.05, None), *(trial(n, 10.0, n / 100 - 7, "db1") for n in highest)]
    (about,) = [text for text in judge_sweep("s", "1/1/1/1M", trials, 0.1).evidence if "runs as long as these" in text]
    assert f"({RUN_S:.0f} s)" in about
    assert ("from one trial" in about) == one


def test_retrograde_loads_are_a_finding_not_part_of_the_plateau():
    trials = [trial(n, 10.0, n / 100 - 7, "db1") for n in (1000, 1200, 1400, 1600)]
    falling = trial(1800, 7.0, 18.0, "db1")
    found = judge_sweep("s", "1/1/1/1M", [trial(300, 4.2, 0.05, None), *trials, falling], 0.1)
    assert found.max_throughput.value == pytest.approx(10.0, rel=0.03)
    assert any("retrograde: from 1800 users" in text for text in found.evidence)


def test_the_plateau_leaves_out_loads_near_the_knee_if_three_lie_further_out():
    users = [300, 800, 900, 1300, 1600, 2000]
    rates = [4.1, 8.8, 9.2, 10.0, 10.0, 10.0]
    waits = [0.05, 2.5, 3.5, 6.0, 9.0, 13.0]
    found = [trial(u, x, r, "db") for u, x, r in zip(users, rates, waits, strict=True)]
    assert judge_sweep("s", "1/1/1/1M", found).plateau_users == (1300, 1600, 2000)
    assert judge_sweep("s", "1/1/1/1M", found[:-1]).plateau_users == (800, 900, 1300, 1600)


def test_loads_whose_interactions_take_half_the_run_do_not_count_if_three_others_do():
    free = trial(300, 4.2, 0.05, None)
    settled = [trial(n, 10.0, n / 100 - 7, "db1") for n in (1400, 1800, 2200)]
    late = [trial(n, 8.0, 8.0, "db1") for n in (4000, 6000)]  # N/X - Z: 43 and 68 s of 60
    found = judge_sweep("s", "1/1/1/1M", [free, *settled, *late], 0.1)
    assert found.plateau_users == (1400, 1800, 2200)
    assert any("too short for 4000, 6000 users" in t and t.endswith("they do not count") for t in found.evidence)
    as_many = [trial(n, 10.0, 8.0, "db1") for n in (4000, 6000)]  # 33 and 53 s of 60
    found = judge_sweep("s", "1/1/1/1M", [free, *settled[:2], *as_many], 0.1)
    assert found.plateau_users == (1400, 1800, 4000)
    assert any("4000 count nevertheless" in t for t in found.evidence)


def test_a_run_that_is_too_short_for_its_load_does_not_lower_the_maximum():
    """A database that collapses: what such a run serves is a lower bound."""
    free, settled = trial(300, 4.2, 0.05, None), trial(1400, 10.0, 7.0, "db1")
    free = replace(free, saturations=[*idle("web1", "app1", "middleware1"), saturation("db1", 0.0, mean=41.0)])
    late = [trial(4000, 4.0, 20.0, "db1"), trial(13000, 1.5, 20.0, "db1")]
    found = judge_sweep("s", "1/1/1/1M", [free, settled, *late], 0.1)
    assert found.plateau_users == (1400,)
    assert found.max_throughput.value == pytest.approx(10.0, rel=0.03)
    assert found.at_least, "one load tells no maximum"
    assert (found.verdict, [b.tier for b in found.bottlenecks]) == ("single", ["db"])
    assert any("too short for 4000, 13000 users" in t and t.endswith("they do not count") for t in found.evidence)


def test_two_that_are_never_idle_together_take_turns_even_if_they_overlap():
    def marked(node, marks):
        seen = saturation(node, float(marks.mean()), mean=70.0)
        return replace(seen, indicator=marks)

    at = np.arange(600) % 100
    app, db = marked("app1", (at < 65).astype(float)), marked("db1", ((at >= 45) | (at < 5)).astype(float))
    found = [*idle("web1", "middleware1"), app, db]
    v = judged(found)
    assert (v.verdict, v.kind) == ("multi", "alternating")
    apart = marked("db1", ((at >= 30) & (at < 90)).astype(float))
    assert judged([*idle("web1", "middleware1"), app, apart]).kind != "alternating", "both have time left over"


def test_trials_that_disagree_on_what_limits_beside_another_are_unknown():
    def seen(users, db, app):
        """Shares of saturation of two CPUs that are both used 95 %."""
        cpus = [saturation("db1", db, mean=95.0), saturation("app1", app, mean=95.0)]
        return replace(trial(users, 10.0, users / 100 - 7, None), saturations=[*idle("web1", "middleware1"), *cpus])

    free = trial(300, 4.2, 0.05, None)
    found = [free, seen(1400, 1.0, 0.3), seen(1600, 1.0, 0.3), seen(1800, 1.0, 0.9), seen(2000, 1.0, 0.9)]
    verdict = judge_sweep("s", "1/1/1/1M", found, 0.1)
    assert (verdict.verdict, verdict.bottlenecks) == ("unknown", [])
    assert any(t.endswith("most name db cpu (4 of 4)") for t in verdict.evidence), verdict.evidence
    assert verdict.next[0].startswith("run the loads beyond the knee longer"), verdict.next


@pytest.mark.parametrize(("agree", "said"), [(3, "unknown"), (6, "unknown"), (7, "multi")])
def test_one_trial_that_says_something_else_counts_unless_most_others_agree(agree, said):
    """By Wilson's interval, 3 of 4 and 6 of 7 may be a half, 7 of 8 are more."""
    two = [Bottleneck(tier, "cpu", (f"{tier}1",), 0.95, 0.9, 1.0) for tier in ("app", "db")]
    result = SweepVerdict("s", "1/1/1/1M", "unknown")
    other = replace(two[0], saturation=0.2, low=0.1, high=0.3)
    combine(result, [*[Verdict("multi", "simultaneous", two)] * agree, Verdict("single", "stable", [other])])
    assert result.verdict == said
    assert all(b.saturation == pytest.approx(0.95) for b in result.bottlenecks), "only of those that agree"
    assert {b.tier for b in result.bottlenecks} == ({"app", "db"} if said == "multi" else set())


def test_the_saturation_of_a_sweep_has_the_error_that_its_trials_show():
    """Each says +- 0.05, and they differ by 0.2: t(2) of 0.5, 0.7 and 0.9 is +- 0.5."""
    result = SweepVerdict("s", "1/1/1/1M", "unknown")
    each = [Bottleneck("db", "cpu", ("db1",), s, s - 0.05, s + 0.05) for s in (0.5, 0.7, 0.9)]
    combine(result, [Verdict("single", "stable", [b]) for b in each])
    (pooled,) = result.bottlenecks
    assert (pooled.saturation, pooled.low, pooled.high) == pytest.approx((0.7, 0.203, 1.0), abs=0.01)


def test_a_load_whose_answers_do_not_account_for_the_users_has_no_say():
    """At 5,160 users a fifth of them is in requests that never ended in the run: they pile up at the front."""
    free, settled = trial(300, 4.2, 0.05, None), trial(1400, 10.0, 7.0, "db1")
    piling = trial(5160, 10.0, 34.0, "app1")
    found = judge_sweep("s", "1/1/1/1M", [free, settled, piling], 0.1)
    assert (found.verdict, [b.tier for b in found.bottlenecks]) == ("single", ["db"])
    both = replace(piling, saturations=[*idle("web1", "middleware1"), saturation("app1", 1.0), saturation("db1", 1.0)])
    found = judge_sweep("s", "1/1/1/1M", [free, both], 0.1)
    assert (found.verdict, found.bottlenecks) == ("unknown", [])
    assert found.next[0].startswith("run the loads beyond the knee longer")


def test_a_hot_replica_is_compared_by_its_own_use():
    """The application and one of three databases are full; the other two, which idle, change nothing."""
    nodes = NODES | {"db2": "db", "db3": "db"}
    full = [*idle("web1", "middleware1", "db2", "db3"), saturation("app1", 1.0), saturation("db1", 0.99)]
    trials = [replace(trial(n, x, r, None), nodes=nodes) for n, x, r in ((300, 4.2, 0.05),)]
    trials = [replace(t, saturations=idle(*nodes)) for t in trials]
    for users in (1400, 1600, 1800):
        trials.append(replace(trial(users, 10.0, users / 100 - 7, None), nodes=nodes, saturations=full))
    found = judge_sweep("s", "1/1/1/3M", trials, 0.1)
    assert (found.verdict, found.kind) == ("multi", "simultaneous")
    assert sorted((b.tier, b.nodes) for b in found.bottlenecks) == [("app", ("app1",)), ("db", ("db1",))]


def test_a_replica_that_half_of_the_trials_name_is_named():
    named = [("db1", "db2"), ("db1",), ("db1",)]
    for trials, nodes in ((2, ("db1", "db2")), (3, ("db1",))):
        result = SweepVerdict("s", "1/1/1/2M", "unknown")
        combine(
            result, [Verdict("single", "stable", [Bottleneck("db", "cpu", n, 0.95, 0.9, 1.0)]) for n in named[:trials]]
        )
        assert [b.nodes for b in result.bottlenecks] == [nodes]


def full_beside(second, third=20.0):
    """A sweep over two databases, of which chance lets the first read full: they are used 99 % and `second`. The
    application is used `third`."""
    nodes = NODES | {"db2": "db"}
    some = [saturation("db1", 1.0, mean=99.0), saturation("db2", 0.1, mean=second), saturation("app1", 0.1, mean=third)]
    full = [*idle("web1", "middleware1"), *some]
    trials = [replace(trial(300, 4.2, 0.05, None), nodes=nodes, saturations=idle(*nodes))]
    trials += [replace(trial(n, 10.0, n / 100 - 7, None), nodes=nodes, saturations=full) for n in (1400, 1600, 1800)]
    return judge_sweep("s", "1/1/1/2M", trials, 0.1)


@pytest.mark.parametrize(("second", "named"), [(96.0, ["db1", "db2"]), (84.0, ["db1", "db2"]), (50.0, ["db1"])])
def test_a_replica_is_named_if_more_of_the_others_alone_would_bring_less(second, named):
    """Half as much capacity again of both gains 50 %; of the first alone 3, 18 and 50 %."""
    found = full_beside(second)
    assert (found.verdict, list(found.bottlenecks[0].nodes)) == ("single", named)


def test_a_replica_with_room_is_not_named_if_something_else_limits_next():
    """The application is used 88 %: more of both databases gains no more than more of the first alone."""
    assert full_beside(84.0, 88.0).bottlenecks[0].nodes == ("db1",)


@pytest.mark.parametrize(("second", "said"), [(96.0, "multi"), (93.0, "unknown"), (88.0, "single")])
def test_of_two_that_are_full_a_second_with_little_room_may_limit_too(second, said):
    """More of the first alone could bring 3, 6 or 13 %: 5 to 8 % are too near to what counts as a gain."""
    two = [saturation("db1", 1.0, mean=99.0), saturation("app1", 0.9, mean=second)]
    used = [*idle("web1", "middleware1"), *(saturation(n, 0.0, mean=41.0) for n in ("app1", "db1"))]
    trials = [replace(trial(300, 4.2, 0.05, None), saturations=used)]
    for n in (1400, 1600, 1800):
        made = trial(n, 10.0, n / 100 - 7, None)
        trials.append(replace(made, saturations=[*idle("web1", "middleware1"), *two]))
    found = judge_sweep("s", "1/1/1/1M", trials, 0.1)
    assert found.verdict == said
    if said == "unknown":
        assert "app cpu and db cpu are full" in found.next[0]


def test_trials_that_disagree_are_unknown():
    trials = [trial(300, 4.2, 0.05, None), trial(1000, 10.0, 3.0, "db1"), trial(1200, 10.0, 5.0, "app1")]
    found = judge_sweep("s", "1/1/1/1M", trials, 0.1)
    assert found.verdict == "unknown"
    assert any("disagree" in text for text in found.evidence)


def test_repetitions_of_the_only_load_below_saturation_tell_no_demand():
    """The slope between 28.4 and 28.9/s is noise; it said that the database would saturate at half its maximum."""
    capacity = dict.fromkeys(NODES, 0.2)

    def used(users, throughput, response_s, hot, db_cores):
        made = trial(users, throughput, response_s, hot)
        cores = dict.fromkeys(NODES, 0.01 + 0.0005 * throughput) | {"db1": db_cores}
        return replace(made, used_cores=cores, capacity_cores=capacity)

    low = [used(2000, x, 0.01, None, cores) for x, cores in ((28.4, 0.058), (28.8, 0.061), (28.9, 0.063))]
    high = [used(users, 90.0, users / 900 - 7, "db1", 0.199) for users in (8000, 10000, 12000)]
    found = judge_sweep("s", "1/1/1/1M", [*low, *high], 0.2)
    law = next(t for t in found.evidence if t.startswith("utilization law"))
    assert "law: db1" not in law
    assert "of all CPUs but db1" in law


def test_a_cpu_whose_use_does_not_grow_with_the_throughput_has_no_law():
    """Rounding gave it a limit of 1e16/s, and noise one of some thousands."""
    capacity = dict.fromkeys(NODES, 0.2)
    steady = {x: 0.02 + 1e-18 * x for x in (10.0, 20.0, 30.0)}
    noisy = {10.0: 0.0200, 20.0: 0.0212, 30.0: 0.0201}
    for use in (steady, noisy):
        low = [
            replace(trial(100 * n, x, 0.01, None), used_cores=dict.fromkeys(NODES, use[x]), capacity_cores=capacity)
            for n, x in enumerate(use, start=1)
        ]
        low = [replace(t, load=replace(t.load, throughput_per_s=x)) for t, x in zip(low, use, strict=True)]
        assert law_limits(low) == []


def test_sweep_without_a_valid_trial():
    bad = replace(load(), valid=False, invalid_reasons="errors")
    found = judge_sweep("s", "1/1/1/1M", [TrialData(bad, [], NODES)], 0.1)
    assert (found.verdict, found.max_throughput) == ("unknown", None)
    assert judge_sweep("s", "1/1/1/1M", []).verdict == "unknown"


def invalid(made):
    return replace(made, load=replace(made.load, valid=False, invalid_reasons="wrong_capacity"))


def test_nothing_limits_only_as_far_as_the_loads_are_valid():
    """The higher loads were full, and exactly these are invalid: they read more CPU time than the node has."""
    low = [trial(users, users / 10 / 7.02, 0.02, None) for users in (1000, 3000)]
    high = [invalid(trial(users, 80.0, users / 10 / 80 - 7, "db1")) for users in (7000, 9000)]
    assert judge_sweep("s", "1/1/1/1M", low, 0.1).verdict == "none"
    found = judge_sweep("s", "1/1/1/1M", [*low, *high], 0.1)
    assert (found.verdict, found.bottlenecks) == ("unknown", [])
    told = "whether something limits at 7000 users and 9000 users is not known: no trial there is valid"
    assert told in found.evidence
    assert found.next == ["repeat u07000.r01, u09000.r01: invalid"]
    again = [*high, *(trial(users, users / 10 / 7.02, 0.02, None) for users in (7000, 9000))]
    assert judge_sweep("s", "1/1/1/1M", [*low, *again], 0.1).verdict == "none"
    between = [low[0], invalid(low[1]), trial(7000, 7000 / 10 / 7.02, 0.02, None)]
    assert judge_sweep("s", "1/1/1/1M", between, 0.1).verdict == "none"


def test_lowest_load_that_waits_itself_is_no_base():
    found = judge_sweep("s", "1/1/1/1M", [trial(1000, 10.0, 3.0, "db1")], 0.1)
    assert found.trials[0][1].lost == pytest.approx(0.3)


@pytest.mark.filterwarnings("error")
def test_where_no_node_of_a_tier_was_read_its_use_is_not_known():
    rows = [np.array([np.nan, 1.0, 0.5]), np.array([np.nan, 0.5, np.nan])]
    assert mean_known(rows) == pytest.approx([np.nan, 0.75, 0.5], nan_ok=True)


@pytest.mark.parametrize(
    ("longer", "host_pct", "verdict"),
    [
        (2.1, None, "hidden"),
        (2.1, 10.0, "hidden"),
        (2.1, 74.0, "unknown"),
        (1.1, 74.0, "single"),
        (8.0, 74.0, "hidden"),
    ],
)
def test_a_place_that_is_held_longer_on_a_busy_host_waits_for_nothing_that_is_known(longer, host_pct, verdict):
    """All that the nodes do takes longer on a host that is used; more places may help all the same."""
    pool = saturation("app1", 1.0, resource="pool", item="connections", mean=100.0)
    used = {} if host_pct is None else {("host", "cpu", ""): host_pct}
    context = Context(held_longer={pool.key: longer}, used_pct=used)
    found = [pool, *idle("web1", "app1", "middleware1", "db1")]
    assert judge_trial(load(), found, NODES, 0.05, context).verdict == verdict


def test_a_machine_that_was_full_is_not_to_be_asked_again():
    """The same load on the same machine would be refused, too: a smaller model, or a larger machine, is what helps."""
    low = [trial(users, users / 10 / 7.02, 0.02, None) for users in (1000, 3000)]
    high = [invalid(trial(users, 80.0, users / 10 / 80 - 7, "db1")) for users in (7000, 9000)]
    full = [replace(t, load=replace(t.load, invalid_reasons="host_saturated, collector_interval")) for t in high]
    told = (
        "let nothing else run on the machine beneath the nodes, or take a larger one, or a smaller scale for the whole "
        "sweep: it was full at "
    )
    assert judge_sweep("s", "1/1/1/1M", [*low, *full], 0.1).next == [f"{told}u07000.r01, u09000.r01"]
    both = judge_sweep("s", "1/1/1/1M", [*low, high[0], full[1]], 0.1).next
    assert both == ["repeat u07000.r01: invalid", f"{told}u09000.r01"]
    assert judge_sweep("s", "1/1/1/1M", full, 0.1).next == [f"{told}u07000.r01, u09000.r01"]
    assert judge_sweep("s", "1/1/1/1M", high, 0.1).next == [
        "repeat the sweep: no trial is valid; the reasons are listed"
    ]


def test_of_many_refused_trials_a_sentence_names_few():
    low = [trial(users, users / 10 / 7.02, 0.02, None) for users in (1000, 3000)]
    many = [invalid(trial(4000 + n, 80.0, 1.0, "db1")) for n in range(1000)]
    (told,) = judge_sweep("s", "1/1/1/1M", [*low, *many], 0.1).next
    assert told.endswith("u04005.r01 and 994 other trials: invalid")
