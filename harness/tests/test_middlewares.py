"""The catalogue of middlewares: defaults, refusals, and that Ansible, Terraform and set-up know the same ones."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest
import yaml
from ntier_harness.errors import RequestError
from ntier_harness.request import make_spec
from ntier_harness.settings import values
from ntier_harness.systems import find

ROOT = Path(__file__).resolve().parents[2]
RUBBOS = find(ROOT, "rubbos")
DBMS = RUBBOS.definition.variants["dbms"].choices
MIDDLEWARES = RUBBOS.definition.variants["middleware"].choices
APP_POOLS = RUBBOS.rules.app_pools


def request(**options):
    return make_spec({"topo": "1/1/1/2M", "phases": "smoke"} | options, ROOT, cores=8)


@pytest.mark.parametrize("name", MIDDLEWARES)
def test_what_a_role_allows_is_what_the_catalogue_says(name):
    specs = yaml.safe_load((ROOT / f"ansible/roles/{name}/meta/argument_specs.yml").read_text())["argument_specs"]
    allowed = {option: spec.get("choices") for option, spec in specs["main"]["options"].items()}
    known = MIDDLEWARES[name]
    assert allowed[f"{name}_dbms"] == known.with_["dbms"]
    for setting in ("policy", "tie", "writes"):
        assert allowed[f"{name}_{setting}"] == known.settings[f"middleware_{setting}"]


def test_set_up_knows_the_same_names():
    images = yaml.safe_load((ROOT / "setup/images/images.yml").read_text())["images"]
    assert {name for name, one in images.items() if one["tier"] == "middleware"} == set(MIDDLEWARES)


def test_app_pools_are_the_servlets_of_the_application():
    routes = (ROOT / "rubbos-app/src/main/java/io/ntier/rubbos/web/Routes.java").read_text()
    assert routes.count("routes.put(") == APP_POOLS


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("statement", "least_pending", "first", "first")),
        ({"middleware": "haproxy"}, ("connection", "least_connections", "round_robin", "first")),
        ({"middleware": "pgpool", "topo": "1/1/1/2P"}, ("statement", "random", "none", "all")),
        ({"middleware": "haproxy", "set": ["middleware_policy=random"]},
         ("connection", "random", "round_robin", "first")),
    ],
)  # fmt: skip
def test_a_trial_records_how_replicas_are_chosen(options, expected):
    soft = values(request(**options))
    assert tuple(soft[f"middleware_{k}"] for k in ("granularity", "policy", "tie", "writes")) == expected


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"middleware": "mysqlrouter", "topo": "1/1/1/2P"}, "allowed with P are shardingsphere, haproxy, pgpool"),
        ({"middleware": "haproxy", "set": ["middleware_policy=least_pending"]},
         "haproxy has no 'least_pending'; allowed are least_connections, round_robin, random"),
        ({"middleware": "haproxy", "set": ["middleware_writes=all"]}, "haproxy has no 'all'; allowed are first"),
        ({"middleware": "haproxy", "mix": "read_write"}, "one of 2 replicas only; allowed with 2 M replicas are shard"),
        ({"set": ["middleware_writes=first"], "mix": "read_write"}, "mix read_write writes"),
        ({"middleware": "pgbouncer", "mix": "read_write", "topo": "1/1/1/3P"}, "are shardingsphere, pgpool with"),
    ],
)  # fmt: skip
def test_what_a_middleware_lacks_is_refused(options, says):
    with pytest.raises(RequestError) as error:
        request(**options)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_single_replica_may_be_written_to_through_any():
    for name, known in MIDDLEWARES.items():
        for letter in (DBMS[dbms].letter for dbms in known.with_["dbms"]):
            one = {"set": ["db_replicas=1"]} if letter == "C" else {}
            assert request(middleware=name, mix="read_write", topo=f"1/1/1/1{letter}", **one).middleware == name


def test_held_connections_are_not_shut_out():
    """Without multiplexing all the application's connections fit into one replica, at any scale."""
    for scale in ("0.1", "1"):
        soft = values(request(middleware="haproxy", topo="1/2/1/2P", scale=scale, users="1000"))
        held = 2 * APP_POOLS * soft["app_pool_size"]
        assert soft["middleware_pool_max"] == held < soft["db_max_connections"]
    shared = values(request(middleware="haproxy", set=["app_pool_mode=shared", "app_pool_size=30"]))
    assert shared["middleware_pool_max"] == 30
    assert values(request(scale="0.2"))["middleware_pool_max"] == 18


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({}, 500),  # one pool of 90: the DBMS's own default has room
        ({"set": ["middleware_pool_max=600"]}, 640),
        ({"topo": "1/2/2/1P", "middleware": "pgbouncer"}, 2 * 90 + 40),
        ({"topo": "1/2/2/1P"}, 2 * 90 + 40),
        ({"topo": "1/1/1/1P"}, 150),
    ],
)
def test_the_dbms_accepts_the_pools_of_all_middlewares(options, allowed):
    assert values(request(scale="1", users="1000", **options))["db_max_connections"] == allowed


@pytest.mark.parametrize("name", ["pgbouncer", "proxysql"])
def test_a_middleware_takes_all_connections_of_the_application(name):
    many = request(middleware=name, topo="1/1/1/1P", scale="1", users="1000", set=["app_pool_size=300"])
    assert values(many)["app_connections"] == APP_POOLS * 300
    limit = yaml.safe_load((ROOT / f"ansible/roles/{name}/defaults/main.yml").read_text())[f"{name}_clients_max"]
    template = jinja2.Environment().from_string(limit)
    assert template.render(values(many)) == str(APP_POOLS * 300 + 100)
    assert template.render() == "5000"


def test_a_middleware_without_a_limit_of_clients_is_told_none():
    assert "app_connections" not in values(request())


@pytest.mark.parametrize("name", MIDDLEWARES)
def test_a_role_takes_as_many_clients_as_the_catalogue_says(name):
    if (most := MIDDLEWARES[name].traits.get("most_clients")) is None:
        return
    role = (ROOT / f"ansible/roles/{name}/tasks/main.yml").read_text()
    shared = MIDDLEWARES[name].traits["multiplexes"]
    limited = f"{name}_clients_max | int <= {most + 100}" if shared else f"{name}_pool_max | int <= {most}"
    assert limited in role


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"set": ["middleware_pool_max=600", "db_max_connections=500"]}, "may open 600 connections at a node; allowed"),
        ({"topo": "1/1/2/1P", "middleware": "pgbouncer", "set": ["db_max_connections=150"]}, "may open 180 conn"),
        ({"topo": "1/1/1/1P", "set": ["db_max_connections=92"]}, "may open 90 connections at a node, and the DBMS"),
        ({"middleware": "haproxy", "set": ["db_max_connections=400"]}, "haproxy may open 432 connections at a node"),
        ({"topo": "1/1/1/2P", "middleware": "pgpool", "set": ["app_pool_size=300"]},
         "the app tier may open 5400 connections, and pgpool takes up to 5000"),
        ({"topo": "1/4/1/2P", "middleware": "pgbouncer", "set": ["app_pool_size=1000"]}, "pgbouncer takes up to 59900"),
        ({"topo": "1/1/1/1P", "middleware": "pgpool", "set": ["middleware_pool_max=20"]},
         "set middleware_pool_max: 20, which lets 20 of the app tier's 432 connections in, and"),
        ({"topo": "1/1/2/1M", "middleware": "mysqlrouter", "set": ["middleware_pool_max=200"]}, "lets 400 of the app"),
        ({"middleware": "haproxy", "set": ["middleware_pool_max=100"]}, "lets 200 of the app"),
    ],
)  # fmt: skip
def test_connections_that_would_be_shut_out_are_refused(options, says):
    with pytest.raises(RequestError) as error:
        request(scale="1", users="1000", **options)
    assert says in str(error.value)


@pytest.mark.parametrize(("name", "limit"), [("shardingsphere", 90), ("haproxy", 432)])
@pytest.mark.parametrize(("topo", "reserved"), [("1/1/1/1M", 0), ("1/1/1/1P", 3)])
def test_a_limit_that_all_connections_fit_into_is_taken(name, limit, topo, reserved):
    limit += reserved
    least = request(topo=topo, middleware=name, scale="1", users="1000", set=[f"db_max_connections={limit}"])
    assert values(least)["db_max_connections"] == limit


@pytest.mark.parametrize(
    ("topo", "name", "least"), [("1/1/1/2M", "haproxy", 216), ("1/1/2/1P", "pgpool", 216), ("1/1/1/1M", "haproxy", 432)]
)
def test_a_pool_that_all_connections_fit_into_is_taken(topo, name, least):
    given = request(topo=topo, middleware=name, scale="1", users="1000", set=[f"middleware_pool_max={least}"])
    assert values(given)["middleware_pool_max"] == least


def test_the_default_is_found_by_no_name():
    assert request().middleware == request(middleware="shardingsphere", topo="1/1/1/1P").middleware == "shardingsphere"
