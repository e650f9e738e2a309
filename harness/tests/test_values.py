"""Requests: what is understood, how it is ordered, and what is refused with which words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ntier_analysis.contracts.nodes import Node
from ntier_harness import plan, scale, settings
from ntier_harness.catalog import Phases, read_mix
from ntier_harness.drivers import Entry, Run, split
from ntier_harness.drivers.jmeter import JMeter, Walks
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.request import make_spec, parse_users
from ntier_harness.runner import Runner
from ntier_harness.systems import find
from ntier_harness.targets.inventory import wanted_nodes
from ntier_harness.targets.local import granted, quota_ms
from ntier_harness.targets.terraform import common_variables, program

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "workloads"
RUBBOS = find(ROOT, "rubbos")
USERS = RUBBOS.definition.load.factor.range


def test_users():
    assert parse_users("1000:13000:1000", USERS) == tuple(range(1000, 13001, 1000))
    assert parse_users("4000,1000,4000", USERS) == (1000, 4000)
    assert parse_users("500:1200:500", USERS) == (500, 1000)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("topo", None, "topo: missing"),
        ("topo", "1/1/1", "expected numbers web/app/middleware/db"),
        ("topo", "1/0/1/1M", "app count is 0, allowed are 1..99"),
        ("topo", "1/1/1/1C", "1 data node for 2 replicas"),
        ("users", "0", "allowed are 1..100000"),
        ("users", "5000:1000:1000", "first <= last"),
        ("users", "1:100000:1", "at most 999"),
        ("users", "1000-2000", "expected first:last:step"),
        ("users", "100000", "real users; at most 15000"),
        ("mix", "browse_onyl", "did you mean 'browse_only'?); allowed are browse_only, read_write"),
        ("phases", "smok", "did you mean 'smoke'?"),
        ("phases", "10/2/1", "run is 5..86400 s"),
        ("reps", "0", "allowed are 1..99"),
        ("reps", "x", "not a whole number"),
        ("middleware", "cjdbc", "allowed are shardingsphere, haproxy, pgpool"),
        ("middleware", "pgpool", "allowed with M are shardingsphere, haproxy, mysqlrouter, proxysql"),
        ("target", "aws", "allowed are local, hosts"),
        ("scale", "0.13", "not a multiple of 0.05"),
        ("scale", "big", "neither 'auto' nor a number"),
        ("search", "capcity", "did you mean 'capacity'?); allowed are grid, capacity"),
        ("precision", "0.05", "give it with --search capacity"),
        ("seed", "-1", "allowed are 0.."),
        ("clients", "17", "allowed are 1..16"),
        ("name", "My Sweep", "allowed are up to 40"),
        ("data", "smal", "did you mean 'small'?"),
        ("set", ["web_max_worker=3"], "did you mean 'web_max_workers'?"),
        ("set", ["web_max_workers=0"], "allowed are 2..20000"),
        ("set", ["middleware_policy=fair"], "allowed are least_pending, round_robin, random, least_connections"),
        ("set", ["middleware_policy=least_connections"], "shardingsphere has no 'least_connections'"),
        ("set", ["middleware_tie=none"], "shardingsphere has no 'none'; allowed are first, random"),
        ("set", ["db_search_index=none"], "allowed are prefix, full"),
        ("set", ["x"], "expected name=value"),
    ],
)
def test_a_wrong_option_is_one_clear_error(spec, option, value, says):
    with pytest.raises(RequestError) as error:
        spec(**{option: value})
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_capacity_is_searched_only_where_users_think():
    """Of work, a search stopped after one trial with a sentence on users."""
    says = "search: capacity searches where users think; the load of system two-phase-commit is work; allowed is grid"
    for more in ({}, {"factor": "users=1,8"}):
        with pytest.raises(RequestError, match=says):
            make_spec({"system": "two-phase-commit", "topo": "2", "search": "capacity"} | more, ROOT, cores=8)


def test_sweep_key(spec):
    assert spec(phases=None).sweep == "1-1-1-1M.browse_only.shardingsphere"
    assert spec().sweep == "1-1-1-1M.browse_only.shardingsphere.smoke"
    assert spec(phases="20/40/5").name == ""
    assert spec(phases="3/10/1", scale="0.15", seed="7", data="tiny").name == "3-10-1-s0_15-tiny-seed7"
    assert spec(name="mine").sweep.endswith(".mine")
    a, b = (spec(set=[f"web_max_workers={n}"]).name for n in (60, 61))
    assert a != b


@pytest.mark.parametrize(
    ("cores", "shares", "expected"),
    [(2, 5, 0.2), (2, 14, 0.1), (8, 5, 1.0), (4, 5, 0.5), (16, 14, 0.75), (64, 14, 1.0)],
)
def test_auto_scale(cores, shares, expected):
    assert scale.auto_scale(cores, shares) == expected


@pytest.mark.parametrize(
    ("request_", "expected"),
    [({"topo": "1/1/1/1M"}, 0.2), ({"system": "two-phase-commit", "topo": "4"}, 0.15)],
)
def test_a_driver_that_works_much_leaves_less_for_the_nodes(request_, expected):
    assert make_spec(request_, ROOT, cores=2).scale == expected


@given(st.integers(1, 128), st.floats(4.2, 200))
def test_auto_scale_keeps_its_promise(cores, shares):
    try:
        s = scale.auto_scale(cores, shares)
    except RequestError:
        assert scale.needed_cores(scale.MIN, shares) > scale.HOST_LIMIT * cores
        return
    assert scale.MIN <= s <= scale.MAX
    assert scale.needed_cores(s, shares) <= scale.HOST_LIMIT * cores + 1e-6
    quota_ms(s)


@given(st.integers(1, 100), st.integers(0, 2**16 - 1))
def test_block_order_is_a_permutation(n, mask):
    assert sorted(plan.block_order(n, mask)) == list(range(n))


@given(st.integers(4, 64), st.integers(4, 64))
def test_any_first_part_of_a_block_covers_the_range(n, part):
    first = sorted(plan.block_order(n, 0)[:part])
    gaps = [b - a for a, b in zip(first, [*first[1:], n], strict=True)]
    assert first[0] == 0
    assert max(gaps) <= 4 * n / len(first)


def test_order_is_by_blocks_and_by_seed(spec):
    s = spec(users="1000:13000:1000", reps="3")
    trials = plan.order(s)
    assert [t.rep for t in trials] == [1] * 13 + [2] * 13 + [3] * 13
    assert plan.order(s) == trials
    assert [t.users for t in trials[:3]] == [1000, 9000, 5000]
    blocks = [[t.users for t in trials[i * 13 : i * 13 + 13]] for i in range(3)]
    assert all(sorted(b) == list(s.users) for b in blocks)
    other = plan.order(spec(users="1000:13000:1000", reps="3", seed="2"))
    assert [t.users for t in other] != [t.users for t in trials]


@pytest.mark.parametrize(
    ("options", "measured", "limit"),
    [
        ({}, False, False),
        ({"search": "capacity"}, True, True),
        ({"system": "two-phase-commit", "topo": "2"}, False, True),
        ({"system": "two-phase-commit", "topo": "2"}, True, False),
    ],
)
def test_a_duration_is_a_limit_where_what_ends_a_trial_is_not_time(options, measured, limit):
    usual = {"topo": "1/1/1/1M"}
    assert plan.ends_early(make_spec(usual | options, ROOT, cores=8), measured=measured) is limit


def test_seeds_differ_by_trial_and_not_by_topology(spec):
    seeds = [t.seed for t in plan.order(spec(users="1000:13000:1000", reps="5"))]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= s < 2**31 for s in seeds)
    assert [t.seed for t in plan.order(spec(topo="1/2/1/2M", users="1000"))] == [
        t.seed for t in plan.order(spec(users="1000"))
    ]
    trial = plan.order(spec(users="1000"))[0]
    assert trial.drawn_anew(0) == trial
    assert len({trial.drawn_anew(times).seed for times in range(5)}) == 5
    assert {trial.drawn_anew(times).key for times in range(5)} == {trial.key}


def test_several_clients_share_the_users(spec):
    two = spec(clients="2", scale="1", users="20000", topo="1/1/1/1M")
    assert two.name.endswith("clients2")
    assert common_variables(two)["tiers"][-1]["count"] == 2
    assert [name for name, tier, _ in wanted_nodes(two) if tier == "client"] == ["client1", "client2"]
    with pytest.raises(RequestError, match="at most 15000 for each of 2 clients"):
        spec(clients="2", scale="1", users="40000", topo="1/1/1/1M")


def test_terraform_or_opentofu(monkeypatch):
    monkeypatch.delenv("TERRAFORM", raising=False)
    runner = Runner()
    for installed, expected in (({"terraform", "tofu"}, "terraform"), ({"tofu"}, "tofu"), (set(), "terraform")):
        monkeypatch.setattr(runner, "has", lambda name, there=installed: name in there)
        assert program(runner) == expected
    monkeypatch.setenv("TERRAFORM", "/opt/tofu")
    assert program(runner) == "/opt/tofu"


def test_soft_resources_are_elbas_scaled(spec):
    values = settings.values(spec(topo="1/2/1/1M", scale="0.2"))
    assert (values["web_max_workers"], values["app_max_threads"]) == (60, 33)
    assert (values["app_pool_size"], values["middleware_pool_max"]) == (3, 18)
    paper = settings.values(spec(topo="1/2/1/1M", scale="1", users="1000"))
    assert [paper[k] for k in ("web_max_workers", "app_max_threads", "app_pool_size", "middleware_pool_max")] == [
        300, 165, 12, 90]  # fmt: skip
    assert settings.values(spec(set=["web_max_workers=7"]))["web_max_workers"] == 7


def test_each_dbms_has_its_own_defaults(spec):
    mysql, postgresql = (settings.values(spec(topo=f"1/1/1/1{letter}")) for letter in "MP")
    assert [v["ntier_dbms"] for v in (mysql, postgresql)] == ["mysql", "postgresql"]
    assert [v["db_search_index"] for v in (mysql, postgresql)] == ["prefix", "full"]
    assert [v["db_max_connections"] for v in (mysql, postgresql)] == [500, 150]
    assert "db_geqo" not in mysql


@pytest.mark.parametrize(
    ("topo", "mix", "writes"),
    [("1/1/1/1M", "read_write", "first"), ("1/1/1/2M", "browse_only", "first"), ("1/1/1/2P", "read_write", "all")],
)
def test_writes_go_to_every_replica_if_somebody_writes(topo, mix, writes):
    request = make_spec({"topo": topo, "mix": mix}, ROOT, cores=8)
    assert settings.values(request)["middleware_writes"] == writes


def test_a_mix_may_have_authors():
    mix = read_mix("read_write", RUBBOS)
    assert mix.author_file == WORKLOADS / "mixes/authors/read_write.csv"
    assert mix.author_share == 0.1
    run = Run("/run/ntier/x", 200, Phases("smoke", 10, 20, 2), 1, Entry("web", 80), think_time_s=7)
    values = Walks(mix, "/opt/mixes").properties(run)
    assert values["ntier.author_mix"] == "/opt/mixes/authors/read_write.csv"
    assert values["ntier.author_share"] == "0.1"
    alone = Walks(read_mix("browse_only", RUBBOS), "/opt/mixes").properties(run)
    assert (alone["ntier.author_mix"], alone["ntier.author_share"]) == ("", "0")


@pytest.mark.parametrize("plan", ["workloads/rubbos.jmx", "systems/mediawiki/load/mediawiki.jmx"])
def test_users_wait_for_an_answer_as_long_as_the_trial_lasts(plan):
    """Who gives up leaves work in the system for nobody, and a system beyond its knee fails instead of being slow."""
    run = Run("/run/ntier/x", 200, Phases("paper", 480, 720, 30), 1, Entry("web", 80), think_time_s=7)
    assert Walks(read_mix("browse_only", RUBBOS), "/opt/mixes").properties(run)["ntier.timeout_ms"] == 0, "JMeter: none"
    assert "${__P(ntier.timeout_ms,0)}" in (ROOT / plan).read_text()


@pytest.mark.parametrize("site", ["ansible/roles/web", "systems/mediawiki/roles/mediawiki_site"])
def test_the_web_server_waits_for_the_app_longer_than_any_trial_lasts(site):
    """Its error would be repeated by users, while the app still works for the first request."""
    defaults = yaml.safe_load((ROOT / "ansible/roles/web/defaults/main.yml").read_text())
    known = defaults | {"groups": {"app": ["app1"]}, "hostvars": {"app1": {"address": "198.18.3.1"}}, "web_threads": 9}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    text = environment.from_string((ROOT / site / "templates/site.conf.j2").read_text()).render(known)
    assert [int(s) for s in re.findall(r" timeout=(\d+)", text)] == [24 * 3600]


@pytest.mark.parametrize(("system", "starts"), [("rubbos", ["0", "1"]), ("mediawiki", ["0"])])
def test_authors_start_at_home_where_they_have_to_log_in(system, starts, tmp_path):
    """In the situation of a logged-in user nobody is logged in: the first request of it would fail."""
    (tmp_path / "kept.csv").write_text("author,state,history,transitions,memory\n0,Search,,3,a=1,\n1,Edit,,3,page=1,\n")
    walks = Walks(read_mix("read_write", find(ROOT, system)), "/opt/mixes")
    run = Run(str(tmp_path), 200, Phases("smoke", 10, 20, 2), 1, Entry("web", 80), think_time_s=7)
    command = JMeter("plan.jmx", walks=walks).prepare(run).replace(walks.situations, str(tmp_path / "kept.csv"))
    subprocess.run(["sh", "-ec", command], check=True)
    head, *lines = (tmp_path / "situations.csv").read_text().splitlines()
    assert head.startswith("author,")
    assert [line[0] for line in lines] == starts


def test_a_mix_whose_authors_have_no_table_is_refused(root):
    (root / "workloads/mixes/read_write.yaml").write_text("author_table: authors/none.csv\nauthor_share: 0.1\n")
    with pytest.raises(RequestError, match=r"author_table: .*authors/none\.csv does not exist"):
        read_mix("read_write", find(root, "rubbos"))


@pytest.mark.parametrize(
    "half", ["author_table: authors/read_write.csv", "author_share: 0.2", "author_table: a.csv\nauthor_share: 0"]
)
def test_half_of_what_makes_authors_is_refused(root, half):
    """There would be no authors, and nobody would say so."""
    (root / "workloads/mixes/read_write.yaml").write_text(f"{half}\n")
    with pytest.raises(RequestError, match=r"read_write\.yaml: author_table: .*, author_share: .*; allowed are both"):
        read_mix("read_write", find(root, "rubbos"))


@pytest.mark.parametrize(
    ("cores", "expected"),
    [(0.2, (2, 10)), (0.15, (3, 20)), (0.04, (1, 25)), (0.03, (1, 33)), (1.0, (10, 10)), (2.5, (25, 10))],
)
def test_quota_in_milliseconds(cores, expected):
    assert quota_ms(cores) == expected


def test_a_quota_that_no_whole_milliseconds_give_is_refused():
    with pytest.raises(RequestError, match="no whole number of ms"):
        quota_ms(0.123)


def test_the_manifest_says_what_a_node_was_really_given():
    node = Node(
        name="db1", tier="db", index=1, node_type="low_cost", address="198.18.4.1", role="mysql", cpu_cores=0.03
    )
    assert granted(node).cpu_cores == pytest.approx(1 / 33, abs=1e-6)


def test_load_goes_to_our_own_nodes_only(lab):
    guard = lab().target.guard
    node = Node(name="web1", tier="web", index=1, node_type="normal", address="198.18.1.1", role="web")
    stranger = node.model_copy(update={"address": "192.0.2.1"})
    guard("198.18.1.1", [node])
    for address, nodes in (("198.18.1.2", [node]), ("192.0.2.1", [stranger])):
        with pytest.raises(WorkError, match="no load is sent"):
            guard(address, nodes)


@given(st.integers(16, 20_000), st.integers(1, 16))
def test_users_are_split_evenly(users, clients):
    parts = split(users, clients)
    numbers = [n for part in parts for n in range(part.first, part.first + part.workers)]
    assert numbers == list(range(users))
    assert max(p.workers for p in parts) - min(p.workers for p in parts) <= 1


def test_statements_are_traced_only_if_asked_for(spec):
    assert settings.values(spec())["middleware_trace"] == "off"
    assert settings.values(spec(set=["middleware_trace=on"]))["middleware_trace"] == "on"


def test_nothing_of_tracing_is_anywhere_unless_it_is_asked_for(spec):
    without, with_ = spec(), spec(trace="100")
    assert with_.sweep == f"{without.sweep}-trace100"
    assert spec(trace="0").sweep == without.sweep
    values = settings.values(without)
    assert settings.values(with_) == values | {"ntier_trace_every": 100, "ntier_trace_statement_ms": 10}
    run = Run("/d", 100, Phases("p", 1, 60, 1), 1, Entry("web", 80), think_time_s=7)
    mix = read_mix("browse_only", RUBBOS)
    told = Walks(mix, "/opt/mixes").properties(run)
    assert not [name for name in told if "trace" in name]
    assert Walks(mix, "/opt/mixes", trace_every=100).properties(run) == told | {"ntier.trace_every": 100}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trace": "one"}, r"trace: 'one' is not a whole number; allowed are 0\.\.1000000"),
        ({"trace": "-1"}, r"trace: -1 is out of range"),
        ({"trace": "9", "system": "toy", "topo": "1/1"}, r"trace: system toy carries no trace context"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(options, message):
    with pytest.raises(RequestError, match=message):
        make_spec({"topo": "1/1/1/1M"} | options, ROOT, cores=2)


def test_least_connections_is_refused_with_the_policy_that_means_the_same(spec):
    with pytest.raises(RequestError, match=r"has no 'least_connections'; .*: least_pending is the same$"):
        spec(set=["middleware_policy=least_connections"])
