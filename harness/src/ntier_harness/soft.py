"""Soft resources (threads, pools, policy): Elba's values, scaled with the nodes, and what `--set` may change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.topology import DBMS

from ntier_harness import middlewares
from ntier_harness.errors import RequestError, unknown

if TYPE_CHECKING:
    from ntier_harness.spec import Spec

CHOICES = {
    "app_pool_mode": ("per_servlet", "shared"),
    "middleware_policy": middlewares.POLICIES,
    "middleware_tie": middlewares.TIES,
    "middleware_writes": ("all", "first"),
    "middleware_trace": ("off", "on"),
    "db_search_index": ("prefix", "full"),
    "db_geqo": ("on", "off"),
    "app_comment_search": ("indexed", "mysql_5_0"),
}
NUMBERS = {  # allowed range; the smallest that can serve a page at all, and what the programs accept
    "web_max_workers": (2, 20_000),
    "app_max_threads": (2, 10_000),
    "app_pool_size": (1, 1_000),
    "middleware_pool_max": (2, 5_000),
    "db_max_connections": (10, 100_000),
    "db_buffer_pool_bytes": (5 * 2**20, 2**40),
}

# Elba's deployment of the paper: Apache MaxClients 300; 330 Tomcat threads and 24 connections per servlet over the
# whole app tier; 90 connections per database node in the middleware; max_connections 500 (MySQL), 150 (PostgreSQL).
ELBA = {"web_max_workers": 300, "app_max_threads": 330, "app_pool_size": 24, "middleware_pool_max": 90}
MAX_CONNECTIONS = {"mysql": 500, "postgresql": 150}
# The paper's "faulty index" is MySQL's subject(10). PostgreSQL has no such index, only one that these searches cannot
# use; what Elba's script made there is not known (docs/decisions/long-queries.md).
SEARCH_INDEX = {"mysql": "prefix", "postgresql": "full"}
APP_POOLS = 18  # servlets with a pool of their own (rubbos-app: Routes.all)
SPARE_CONNECTIONS = 40  # at a DBMS: collector, administrator, connections that are being closed; HAProxy's check: 20
# Normal: half of a database node's memory, which is 1 GiB at small scales (modules/topology). Low-cost: what 384 MiB
# leave beside MySQL's own 250 MB, less than the data (`small` has 221 MB in MySQL), as in the paper.
BUFFER_POOL_BYTES = {"normal": 512 * 2**20, "low_cost": 64 * 2**20}


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """`name=value` texts -> typed settings. Raises RequestError naming what is allowed."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, sep, value = pair.partition("=")
        if not sep:
            raise RequestError(f"set: {pair!r}: expected name=value, for example web_max_workers=60")
        if name in CHOICES:
            if value not in CHOICES[name]:
                raise unknown(f"set {name}", value, CHOICES[name])
            settings[name] = value
        elif name in NUMBERS:
            low, high = NUMBERS[name]
            if not value.isdigit() or not low <= int(value) <= high:
                raise RequestError(f"set {name}: {value!r} is out of range; allowed are {low}..{high}")
            settings[name] = int(value)
        else:
            raise unknown("set", name, [*NUMBERS, *CHOICES])
    return settings


def scaled(total: float, scale: float, nodes: int, least: int) -> int:
    """Elba's total of a tier, at this scale, for one of `nodes` nodes; rounded up: no tier gets less than its share."""
    return max(least, math.ceil(total * scale / nodes - 1e-9))


def soft_resources(spec: Spec) -> dict[str, Any]:
    """The experiment's variables for `deploy.yml` (docs: argument_specs of the roles)."""
    counts, dbms = spec.topology.counts, DBMS[spec.topology.dbms]
    middleware = middlewares.MIDDLEWARES[spec.middleware]
    pool_mode = spec.settings.get("app_pool_mode", "per_servlet")
    pool_size = spec.settings.get("app_pool_size", scaled(ELBA["app_pool_size"], spec.scale, counts["app"], 2))
    held = counts["app"] * pool_size * (APP_POOLS if pool_mode == "per_servlet" else 1)
    values: dict[str, Any] = {
        "ntier_scale": spec.scale,
        "ntier_dbms": dbms,
        "ntier_middleware": spec.middleware,
        "ntier_data_profile": spec.data_profile,
        "web_max_workers": scaled(ELBA["web_max_workers"], spec.scale, 1, 2),
        "app_max_threads": scaled(ELBA["app_max_threads"], spec.scale, counts["app"], 2),
        "app_pool_size": scaled(ELBA["app_pool_size"], spec.scale, counts["app"], 2),
        "app_pool_mode": "per_servlet",
        "app_comment_search": "indexed",
        "middleware_granularity": middleware.granularity,
        "middleware_login": middleware.login,
        "middleware_policy": middleware.policies[spec.topology.dbms][0],
        "middleware_tie": middleware.ties[0],
        "middleware_writes": middlewares.writes(middleware, mix_writes=spec.mix.writes, replicas=counts["db"]),
        "middleware_trace": "off",
        "middleware_pool_max": scaled(ELBA["middleware_pool_max"], spec.scale, 1, 4),
        "db_max_connections": MAX_CONNECTIONS[dbms],
        "db_search_index": SEARCH_INDEX[dbms],
        "db_buffer_pool_bytes": BUFFER_POOL_BYTES[spec.db_type],
    }
    if not middleware.multiplexes:
        values |= held_connections(held, MAX_CONNECTIONS[dbms])
    if dbms == "postgresql":
        values["db_geqo"] = "on"
    return values | spec.settings


def held_connections(held: int, usual: int) -> dict[str, int]:
    """Limits where each of the app tier's `held` connections holds one at a replica while it lives: a smaller limit
    would not queue statements but shut connections out. All of them may be at one replica."""
    return {"middleware_pool_max": held, "db_max_connections": max(usual, held + SPARE_CONNECTIONS)}
