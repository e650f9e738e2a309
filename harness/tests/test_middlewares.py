"""The catalogue of middlewares: defaults, refusals, and that Ansible, Terraform and set-up know the same ones."""

from __future__ import annotations

from pathlib import Path

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


def test_the_default_is_found_by_no_name():
    assert request().middleware == request(middleware="shardingsphere", topo="1/1/1/1P").middleware == "shardingsphere"
