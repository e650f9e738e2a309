"""The principles behind the verdict, each from its own side: what covers the time in which users wait, which load tells
the response time without waiting, what convicts a disk, what an added node refutes."""

from dataclasses import replace

import numpy as np
import pytest
from ntier_analysis.contracts.layout import Layout
from ntier_analysis.statistics.mva import Station, solve
from ntier_analysis.statistics.share import saturation_share
from ntier_analysis.statistics.throughput import Interval
from ntier_analysis.verdict.base import base_response
from ntier_analysis.verdict.context import Context
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.load import Bottleneck, Load
from ntier_analysis.verdict.relief import limiting_replicas
from ntier_analysis.verdict.replicas import with_replicas
from ntier_analysis.verdict.saturation import THRESHOLDS, Saturation
from ntier_analysis.verdict.sweep import judge_sweep

RUN_S, CELLS = 60.0, 600
NODES = {"web1": "web", "app1": "app", "middleware1": "middleware", "db1": "db"}


def resource(node, marks=None, mean=20.0, name="cpu", tier=None, **given):
    """A resource with these cells of 100 ms saturated, used `mean` % on average."""
    marks = np.zeros(CELLS) if marks is None else marks.astype(float)
    rest = max(0.0, (mean - 100 * marks.mean()) / max(1 - marks.mean(), 1e-9))
    return Saturation(
        node, tier or node.rstrip("0123456789"), name, "", "import",
        dict.fromkeys(THRESHOLDS, saturation_share(marks, RUN_S / CELLS)), mean, mean, RUN_S / CELLS,
        indicator=marks, values=np.where(marks == 1, 100.0, rest), **given,
    )  # fmt: skip


def load(users, throughput, response_s, think_s=7.0):
    rates = np.random.default_rng(users).normal(throughput, 0.02 * throughput, 10)
    x = float(rates.mean())
    return Load(f"u{users:05d}", users, users, x, response_s, think_s, 0.0, RUN_S, True, rates=rates)


def trial(users, throughput, response_s, *hot, think_s=7.0, nodes=NODES):
    named = {s.key for s in hot}
    rest = [resource(n, tier=t) for n, t in nodes.items() if (n, "cpu", "") not in named]
    return TrialData(load(users, throughput, response_s, think_s), [*rest, *hot], nodes)


def limited(*hot, low=None, **given):
    """A sweep of a system that completes 20/s at most: two loads below the knee (140 users), three beyond. A pool among
    `low` that is not full is used so much in the mean of both loads, and in proportion to each one's throughput."""
    low_trials = [trial(n, n / 7.02, 0.02, *(_in_proportion(s, n / 45) for s in low or ()), **given) for n in (30, 60)]
    return judge_sweep(
        "s", "1/1/1/1M", [*low_trials, *(trial(n, 20.0, n / 20 - 7, *hot, **given) for n in (200, 250, 300))]
    )


def _in_proportion(s, times):
    if s.resource != "pool" or s.share.value > 0:
        return s
    return replace(s, utilization_mean_pct=times * s.utilization_mean_pct, values=times * s.values)


def named(found):
    return sorted((b.tier, b.resource) for b in found.bottlenecks)


# ---- while users wait, something limits at every moment ------------------------------------------------------------


def turns(period=50, first=0.68, second=0.78):
    """Cells in which two are saturated: together they leave no gap, and overlap by first + second - 1."""
    at = np.arange(CELLS) % period
    return at < first * period, at >= (1 - second) * period


def test_two_that_leave_no_gap_both_limit_whatever_the_throughput_does_meanwhile():
    app, db = turns()
    assert (app | db).all()
    assert (app & db).mean() > 0.4
    found = limited(resource("app1", app, 75), resource("db1", db, 80))
    assert (found.verdict, found.kind, named(found)) == ("multi", "alternating", [("app", "cpu"), ("db", "cpu")])


def test_the_same_shares_without_anything_in_common_prove_nothing():
    rng = np.random.default_rng(1)
    found = limited(resource("app1", rng.random(CELLS) < 0.68, 75), resource("db1", rng.random(CELLS) < 0.78, 79))
    assert (found.verdict, named(found)) == ("hidden", [])


def test_one_that_adds_nothing_to_what_another_covers_is_not_named():
    app = np.arange(CELLS) % 50 < 30
    found = limited(resource("app1", app, 70), resource("db1", np.ones(CELLS), 100))
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])


@pytest.mark.parametrize(("used", "verdict"), [(97, "single"), (94, "unknown"), (88, "multi")])
def test_two_take_turns_only_if_more_of_either_would_bring_something(used, verdict):
    """The application reads saturated in 86 % of the run, the database in most of the rest. More database can bring no
    more than the application has left then: 3, 5.5 or, being used 88 %, more than 8 % of the throughput."""
    at = np.arange(CELLS) % 100
    app = resource("app1", at < 82, used)
    db = resource("db1", (at >= 82) & (at < 98) | (at >= 20) & (at < 43), 67)
    found = limited(app, db)
    assert (found.verdict, named(found)[:1]) == (verdict, [] if verdict == "unknown" else [("app", "cpu")])


def test_of_two_that_are_full_the_one_without_room_is_named():
    """The application reads saturated in more samples, and is used 91 %; the database is used 99 %."""
    at = np.arange(CELLS)
    found = limited(resource("app1", at % 10 < 9, 91), resource("db1", at % 20 < 17, 99))
    assert any("app1 cpu has room" in text for _, v in found.trials for text in v.evidence)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])


def test_nothing_is_hidden_while_something_measured_may_be_full():
    """A mean of 86 % that swings between 60 and 100 % for many seconds may be one of 90 %: the run is too short."""
    swings = np.where(np.arange(CELLS) % 300 < 195, 100.0, 60.0)
    cpu = replace(resource("db1", mean=86.0), values=swings)
    found = limited(cpu)
    assert (found.verdict, named(found)) == ("unknown", [])
    assert any("db1 cpu may have no room" in text for _, v in found.trials for text in v.evidence)
    steady = replace(resource("db1", mean=78.0), values=np.full(CELLS, 78.0))
    assert limited(steady).verdict == "hidden"


@pytest.mark.parametrize(("used", "verdict"), [(79.0, "hidden"), (81.0, "unknown")])
def test_nothing_is_hidden_beside_a_cpu_that_is_used_four_fifths(used, verdict):
    """Where some requests pass others, those that wait do so in a part of the time."""
    steady = replace(resource("app1", mean=used), values=np.full(CELLS, used))
    found = limited(steady)
    assert (found.verdict, named(found)) == (verdict, [])
    assert any("app1 cpu may have no room" in text for _, v in found.trials for text in v.evidence) == (used > 80)


@pytest.mark.parametrize(("measured", "verdict"), [(True, "unknown"), (False, "hidden")])
def test_waiting_as_queues_do_at_the_measured_use_is_not_hidden(measured, verdict):
    """Few users at a CPU that needs 0.12 s of each interaction: exact MVA gives what they lose at 80 % use. If the CPU
    is used little, something else must hold them up."""
    trials = []
    for users in (1, 6, 9):
        found = solve([Station("db1", 0.12)], 1.0, users)  # 0.5 s of thinking, 0.5 s of pure latency
        x, pct = float(found.throughput_per_s[0]), 100 * float(found.utilization["db1"][0])
        hot = resource("db1", mean=pct if measured else 20.0)
        trials.append(
            trial(users, x, users / x - 0.5, *(resource(n, mean=1.0) for n in NODES if n != "db1"), hot, think_s=0.5)
        )
    found = judge_sweep("s", "1/1/1/1M", trials)
    assert (found.verdict, named(found)) == (verdict, [])
    assert any("exact MVA" in text for _, v in found.trials for text in v.evidence) == measured


def test_what_covers_only_the_time_in_which_users_wait_explains_the_limit():
    """Half of the run nobody waits: a resource that is full in the other half has no room while it matters."""
    half = np.arange(CELLS) < CELLS // 2
    hot = resource("db1", half, 40)
    base = load(200, 20.0, 1.0)
    begun = np.linspace(0, 30, 600)
    waits = np.column_stack([begun, np.minimum(begun + 6.0, 31.0)])
    calm = np.linspace(31, 59, 600)[:, None] + np.array([0.0, 0.05])
    spans = np.concatenate([waits, calm, [[59.9, 70.0]]])
    trials = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    for n in (200, 250, 300):
        t = trial(n, 20.0, n / 20 - 7, hot)
        trials.append(
            replace(t, load=replace(base, trial=f"u{n}", users=n, users_real=n, spans=spans, done_s=spans[:, 1]))
        )
    found = judge_sweep("s", "1/1/1/1M", trials)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu")])
    assert all(v.explained > 0.9 for at, v in found.trials if at.users >= 200)


def test_what_costs_less_than_waiting_does_is_not_the_whole_cause():
    """A CPU that is full a quarter of the time, in which the rest goes on at 0.6, costs a tenth. Users lose a third."""
    bursts = np.arange(CELLS) % 100 < 25
    held = [replace(resource(n), values=np.where(bursts, 12.0, 20.0)) for n in ("web1", "app1", "middleware1")]
    found = limited(resource("db1", bursts, 60), *held)
    assert (found.verdict, named(found)) == ("unknown", [])
    assert found.next[0].startswith("record single interactions")


# ---- the response time without waiting -----------------------------------------------------------------------------


@pytest.mark.parametrize(("users", "verdict"), [([760], "unknown"), ([900], "single"), ([760, 1500], "single")])
def test_a_lowest_load_that_is_saturated_is_no_base(users, verdict):
    """Nothing is called unlimited. 760 users spend 8 % of their time in answers, all of which may be service if the
    database is full of something else: more of them tell. 900 spend 22 %."""
    full = resource("db1", np.ones(CELLS), 100)
    found = judge_sweep("s", "1/1/1/1M", [trial(n, 100.0, n / 100 - 7, full) for n in users])
    assert (found.verdict, named(found)) == (verdict, [("db", "cpu")] if verdict == "single" else [])
    assert found.next[0].startswith("add a load of 980 users: whether" if users == [760] else "add a load of ")


@pytest.mark.parametrize(("highest", "verdict"), [(1.2, "single"), (2.0, "none")])
def test_a_lowest_load_with_something_full_is_a_base_only_if_throughput_outgrows_it(highest, verdict):
    """By chance 20 % more users complete 20 % more. A CPU that reads 100 % at twice the throughput, too, is full of
    something else's work."""
    full = resource("db1", np.ones(CELLS), 100)
    found = judge_sweep("s", "1/1/1/1M", [trial(n, n / 9, 2.0, full) for n in (100, round(100 * highest))])
    assert found.verdict == verdict


def test_nothing_full_at_loads_that_grow_is_a_base_and_level_loads_are_none():
    grows = [trial(n, n / 9, 2.0) for n in (100, 150)]
    assert base_response(grows).response_s == 2.0
    level = [trial(n, 20.0 * n / 200, n / 20 - 7) for n in (200,)] + [trial(n, 36.0, n / 20 - 7) for n in (300, 400)]
    assert base_response(level).response_s == 0.0


@pytest.mark.parametrize(
    ("full", "base_s"),
    [
        ([], 0.02),
        ([resource("db1", np.ones(CELLS), 100)], 0.0),
        ([resource("db1", np.ones(CELLS), 100, "disk")], 0.0),
        ([resource("db1", mean=80.0)], 0.02),
        ([resource("app1", np.ones(CELLS), 100, "pool")], 0.02),
        ([resource("client1", np.ones(CELLS), 100, tier="client")], 0.02),
    ],
)
def test_the_only_load_is_a_base_if_it_is_quick_and_nothing_of_the_servers_is_full(full, base_s):
    """A pool may be full of what waits elsewhere, and the generator's own node is no server."""
    assert base_response([trial(100, 100 / 7.02, 0.02, *full)]).response_s == base_s
    assert base_response([trial(100, 100 / 9, 2.0, *full)]).response_s == 0.0


def test_long_service_is_no_waiting_while_throughput_grows_with_the_users():
    found = judge_sweep("s", "1/1/1/1M", [trial(n, n / 1.15, 0.15, think_s=1.0) for n in (10, 20, 40)])
    assert found.verdict == "none"
    assert {v.verdict for _, v in found.trials} == {"none"}


def test_level_throughput_with_nothing_saturated_is_hidden_from_the_lowest_load_on():
    found = judge_sweep("s", "1/1/1/1M", [trial(n, 20.0, n / 20 - 7) for n in (200, 300, 400)])
    assert found.verdict == "hidden"


def test_one_load_cannot_tell_service_from_waiting():
    found = judge_sweep("s", "1/1/1/1M", [trial(300, 20.0, 8.0)])
    assert found.verdict == "unknown"
    assert found.next[0] == "add a load of 100 users: it tells service from waiting"


# ---- tiers ---------------------------------------------------------------------------------------------------------


def test_tiers_with_names_of_their_own_are_judged_like_any():
    nodes = {"a": "frontend", "b": "backend", "c": "cache", "d": "postgres"}
    found = limited(resource("d", np.ones(CELLS), 100, tier="postgres"), nodes=nodes)
    assert (found.verdict, named(found)) == ("single", [("postgres", "cpu")])
    calm = limited(nodes=nodes)
    assert calm.verdict == "hidden"
    assert "a cpu 20 %" in "".join(calm.trials[-1][1].evidence)


def test_the_generator_and_the_host_are_no_tiers():
    nodes = NODES | {"client1": "client", "host": "host"}
    found = limited(resource("client1", np.ones(CELLS), 100, tier="client"), nodes=nodes)
    assert named(found) == []


# ---- disks ---------------------------------------------------------------------------------------------------------


def disk(mean, queue=float("nan"), wait_ms=float("nan")):
    full = np.ones(CELLS) if mean >= 95 else np.zeros(CELLS)
    return resource("db1", full, mean, "disk", queue=queue, wait_ms=wait_ms)


def test_a_disk_whose_requests_take_as_long_as_ever_has_room():
    found = limited(disk(100, 4.0, 10.5), low=(disk(60, 1.0, 10.0),))
    assert (found.verdict, named(found)) == ("hidden", [])


def test_a_disk_at_which_the_users_wait_is_full_however_many_it_serves_at_a_time():
    found = limited(disk(100, 100.0, 50.0), low=(disk(60, 1.0, 10.0),))
    assert (found.verdict, named(found)) == ("single", [("db", "disk")])


def test_a_low_load_without_requests_to_the_disk_says_nothing_of_their_time():
    found = limited(disk(100, 100.0, 50.0), low=(disk(70, 0.0),))
    assert (found.verdict, named(found)) == ("unknown", [])


def test_a_disk_used_in_proportion_to_throughput_serves_one_at_a_time():
    found = limited(disk(99), low=(disk(33),))  # 6.4/s on average at the two low loads: 33 % for 20/s would be 103 %
    assert named(found) == [("db", "disk")]


STOOD_STILL = np.array([[10.0, 18.0], [30.0, 38.0]])


@pytest.mark.parametrize(("answer_s", "pauses"), [(0.1, STOOD_STILL), (0.5, None)], ids=["stood still", "was slow"])
def test_a_load_that_lost_something_does_not_tell_whether_a_disk_is_used_in_proportion(answer_s, pauses):
    """14/s use 72 % of the disk, and 20/s all of it. So it would be of any disk if the system stood still, or was slow,
    in a part of the run, and was as busy as on the plateau in the rest."""
    some = trial(100, 14.0, answer_s, disk(72))
    if pauses is not None:
        some = replace(some, load=replace(some.load, pauses=pauses))
    high = [trial(n, 20.0, n / 20 - 7, disk(100)) for n in (200, 250, 300)]
    found = judge_sweep("s", "1/1/1/1M", [trial(30, 30 / 7.02, 0.02), some, *high])
    assert (found.verdict, named(found)) == ("unknown", [])


def test_a_load_that_lost_something_does_not_acquit_a_disk_used_in_proportion_at_those_that_lost_nothing():
    low = [trial(n, n / 7.02, 0.02, disk(0.73 * n)) for n in (30, 60)]  # 102 % for 20/s
    some = trial(86, 11.5, 0.5, disk(94))
    high = [trial(n, 20.0, n / 20 - 7, disk(100)) for n in (200, 250, 300)]
    assert named(judge_sweep("s", "1/1/1/1M", [*low, some, *high])) == [("db", "disk")]


@pytest.mark.parametrize(("at_low_pct", "verdict"), [((20, 45), "single"), ((97, 99), "unknown"), ((97, 45), "single")])
def test_a_disk_at_its_known_limit_limits_only_if_the_requests_fill_it(at_low_pct, verdict):
    """At both low loads it is as full as at three times as much throughput, or more: something else fills it there, and
    perhaps beyond the knee, too, while something hidden limits. At one of them it may be chance."""
    bounded = [replace(disk(pct), source="cgroup") for pct in (*at_low_pct, 100)]
    low = [trial(n, n / 7.02, 0.02, d) for n, d in zip((30, 60), bounded, strict=False)]
    found = judge_sweep("s", "1/1/1/1M", [*low, *(trial(n, 20.0, n / 20 - 7, bounded[2]) for n in (200, 250, 300))])
    assert (found.verdict, named(found)) == (verdict, [("db", "disk")] if verdict == "single" else [])
    if verdict == "unknown":
        assert found.next[0] == "find out what fills db1 disk at low load, end it, and repeat"


def test_without_its_queue_a_disk_used_more_than_in_proportion_is_unknown():
    found = limited(disk(99), low=(disk(70),))
    assert (found.verdict, named(found)) == ("unknown", [])
    assert "sample queue and waiting time of the disk of db1" in found.next[0]


# ---- what other loads and topologies say ---------------------------------------------------------------------------


def test_two_that_are_both_full_do_not_migrate():
    rng = np.random.default_rng(2)
    found = []
    for i, n in enumerate((200, 250, 300, 350, 400)):
        shares = (0.99, 0.97) if i % 2 else (0.97, 0.99)
        hot = [resource(node, rng.random(CELLS) < s, 98) for node, s in zip(("app1", "db1"), shares, strict=True)]
        found.append(trial(n, 20.0, n / 20 - 7, *hot))
    verdict = judge_sweep("s", "1/1/1/1M", [trial(30, 4.27, 0.02), trial(60, 8.5, 0.02), *found])
    assert (verdict.verdict, verdict.kind, verdict.migration) == ("multi", "simultaneous", [])


def test_a_replica_that_limits_with_little_room_is_named_and_does_not_thin_out_the_saturation():
    """More of db1 alone would bring 9 % at most, since db2 is used 90 %."""
    full = resource("db1", np.random.default_rng(3).random(CELLS) < 0.97, 99)
    (limit,) = limited(full, resource("db2", mean=90), nodes=NODES | {"db2": "db"}).bottlenecks
    assert limit.nodes == ("db1", "db2")
    assert limit.saturation > 0.9


def test_replicas_of_one_that_had_no_room_are_judged_though_it_had_some_in_another_run():
    """db1 is used 94 and 91 % in two runs, and 82 in a third: 89 in the mean. db2 is used 81: more of db1 alone would
    bring a tenth, of both half as much again."""
    full = np.random.default_rng(5).random(CELLS) < 0.8
    low = [trial(n, n / 7.02, 0.02) for n in (30, 60)]
    runs = [
        trial(n, 20.0, n / 20 - 7, resource("db1", full if m > 90 else None, m), resource("db2", mean=81),
              nodes=NODES | {"db2": "db"})
        for n, m in ((200, 82), (250, 91), (300, 94))
    ]  # fmt: skip
    (limit,) = judge_sweep("s", "1/1/1/2M", [*low, *runs]).bottlenecks
    assert limit.nodes == ("db1", "db2")
    once = [resource("db1", full, 95), resource("db2", mean=60)]  # and hardly more than db2 in the other runs
    usual = Context(used_pct={("db1", "cpu", ""): 62.0, ("db2", "cpu", ""): 60.0})
    assert limiting_replicas(once[:1], once, usual) == []


def swept(topology, maximum, verdict="single", tier="db"):
    at = Interval(maximum, 0.98 * maximum, 1.02 * maximum, 0.01 * maximum, 4)
    nodes = tuple(f"{tier}{i + 1}" for i in range(dict(Layout.of(topology).nodes)[tier]))
    some = [Bottleneck(tier, "cpu", nodes, 1.0, 0.9, 1.0)] if verdict == "single" else []
    return SweepVerdict(topology, topology, verdict, "stable", some, at, False)


def test_an_added_node_that_refutes_a_verdict_makes_it_unknown():
    before, _ = with_replicas([swept("1/1/1/1M", 100.0), swept("1/2/1/1M", 180.0)], {})
    assert (before.verdict, before.bottlenecks) == ("unknown", [])
    assert "refute" in before.evidence[-1]
    assert "repeat this topology" in before.next[0]
    kept, _ = with_replicas([swept("1/1/1/1M", 100.0), swept("1/1/1/2M", 180.0)], {})
    assert kept.verdict == "single"
    idle, _ = with_replicas([swept("1/1/1/1M", 100.0), swept("1/1/1/2M", 100.0)], {})
    assert idle.verdict == "unknown"


@pytest.mark.parametrize("verdict", ["none", "hidden", "single", "multi", "unknown"])
def test_every_verdict_says_what_to_measure_next(verdict):
    found = {
        "none": judge_sweep("s", "1/1/1/1M", [trial(n, n / 7.02, 0.02) for n in (30, 60)]),
        "hidden": limited(),
        "single": limited(resource("db1", np.ones(CELLS), 100)),
        "multi": limited(*(resource(n, np.ones(CELLS), 100) for n in ("app1", "db1"))),
        "unknown": limited(disk(99), low=(disk(70),)),
    }[verdict]
    assert found.verdict == verdict
    assert found.next
