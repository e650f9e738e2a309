"""Soft resources (threads, pools, policy): Elba's values, scaled with the nodes, and what `--set` may change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.topology import DBMS

from ntier_harness.errors import RequestError, unknown

if TYPE_CHECKING:
    from ntier_harness.spec import Spec

CHOICES = {
    "app_pool_mode": ("per_servlet", "shared"),
    "middleware_policy": ("least_pending", "round_robin", "random"),
    "middleware_tie": ("first", "random"),
    "middleware_writes": ("all", "first"),
    "middleware_trace": ("off", "on"),
    "db_search_index": ("prefix", "full"),
    "db_geqo": ("on", "off"),
    "app_comment_search": ("indexed", "mysql_5_0"),
}
# Names that are known elsewhere, and what stands for them.
REFUSED = {
    ("middleware_policy", "least_connections"): "shardingsphere balances statements, and each takes one connection: "
    "the replica with the least connections in use is the one with the least pending statements; write least_pending",
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
            if (name, value) in REFUSED:
                raise RequestError(f"set {name}: {value!r} is refused: {REFUSED[name, value]}")
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
        "middleware_policy": "least_pending",
        "middleware_tie": "first",
        "middleware_writes": "all" if spec.mix.writes and counts["db"] > 1 else "first",
        "middleware_trace": "off",
        "middleware_pool_max": scaled(ELBA["middleware_pool_max"], spec.scale, 1, 4),
        "db_max_connections": MAX_CONNECTIONS[dbms],
        "db_search_index": SEARCH_INDEX[dbms],
        "db_buffer_pool_bytes": BUFFER_POOL_BYTES[spec.db_type],
    }
    if dbms == "postgresql":
        values["db_geqo"] = "on"
    return values | spec.settings
