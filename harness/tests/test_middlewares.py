"""The catalogue of middlewares: defaults, refusals, and that Ansible, Terraform and set-up know the same ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ntier_harness.errors import RequestError
from ntier_harness.middlewares import MIDDLEWARES, find
from ntier_harness.soft import APP_POOLS, soft_resources
from ntier_harness.spec import make_spec

ROOT = Path(__file__).resolve().parents[2]
LETTERS = {"mysql": "M", "postgresql": "P"}


def request(**options):
    return make_spec({"topo": "1/1/1/2M", "phases": "smoke"} | options, ROOT / "workloads", cores=8)


@pytest.mark.parametrize("name", MIDDLEWARES)
def test_what_a_role_allows_is_what_the_catalogue_says(name):
    specs = yaml.safe_load((ROOT / f"ansible/roles/{name}/meta/argument_specs.yml").read_text())["argument_specs"]
    allowed = {option: spec.get("choices") for option, spec in specs["main"]["options"].items()}
    known = MIDDLEWARES[name]
    assert {LETTERS[dbms] for dbms in allowed[f"{name}_dbms"]} == set(known.policies)
    assert allowed[f"{name}_policy"] == list(dict.fromkeys(p for list_ in known.policies.values() for p in list_))
    assert allowed[f"{name}_tie"] == list(known.ties)
    assert allowed[f"{name}_writes"] == list(known.writes)


def test_terraform_and_set_up_know_the_same_names():
    text = (ROOT / "terraform/targets/local/variables.tf").read_text()
    names = re.search(r"contains\(\[([^]]*)\], var\.middleware\)", text)[1]
    assert re.findall(r'"(\w+)"', names) == list(MIDDLEWARES)
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
    soft = soft_resources(request(**options))
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
        for letter in known.policies:
            assert request(middleware=name, mix="read_write", topo=f"1/1/1/1{letter}").middleware == name


def test_held_connections_are_not_shut_out():
    """Without multiplexing all the application's connections fit into one replica, at any scale."""
    for scale in ("0.1", "1"):
        soft = soft_resources(request(middleware="haproxy", topo="1/2/1/2P", scale=scale, users="1000"))
        held = 2 * APP_POOLS * soft["app_pool_size"]
        assert soft["middleware_pool_max"] == held < soft["db_max_connections"]
    shared = soft_resources(request(middleware="haproxy", set=["app_pool_mode=shared", "app_pool_size=30"]))
    assert shared["middleware_pool_max"] == 30
    assert soft_resources(request(scale="0.2"))["middleware_pool_max"] == 18


def test_the_default_is_found_by_no_name():
    assert find(None, "M").name == find("shardingsphere", "P").name == "shardingsphere"
