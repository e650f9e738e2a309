"""What data cannot say of RUBBoS: settings that follow from several others, middlewares that would let replicas of the
database differ, and clusters that cannot hold the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ntier_harness.systems.rules import Request

SPARE_CONNECTIONS = 40  # at a DBMS: collector, administrator, connections that are being closed; HAProxy's check: 20
RESERVED_CONNECTIONS = {"postgresql": 3}
"""Only the superuser gets these of the DBMS's connections (superuser_reserved_connections). MySQL has one beside."""
CLUSTER = "mysql_cluster"

MIB = 1 << 20
FULL = 0.85
"""Share of DataMemory that loaded data may take: NDB keeps 5 % for a restart, and users who write add rows."""
FRAGMENTS = 6 * MIB
"""What a data node takes for tables and indexes that are empty: each of their fragments has pages of its own. Of tiny,
15.7 MiB were used; its rows are 9.2 MiB."""
BLOATED = 1.12
"""Memory that rows take over the estimate of their bytes: 254 MiB of small, beside `FRAGMENTS`, for 227 MiB; pages that
are not full, and 22 MiB of statistics of the indexes, which ANALYZE writes."""
BESIDE_BYTES = 360 * MIB
"""Memory of a data node beside DataMemory, with the buffers of the role ndbmgmd: 655 MiB were resident with 304 MiB of
DataMemory, and its watcher needs 13 MiB."""

# Rows of each profile, as rubbos-app's Profile makes them in the mean: users, new stories, old stories, comments of
# each new story, of each old one. `expanded`: 276 comments, but 14 of the youngest 47 days' stories.
PROFILES = {
    "tiny": (551, 240, 80, 35, 35),
    "small": (500_051, 600, 3_000, 35, 35),
    "standard": (500_051, 600, 21_300, 35, 35),
    "expanded": (500_051, 6_960, 6_000, 241, 276),
}
# Bytes of each row, all its indexes included. NDB adds (MySQL's manual, Data Node Memory Management) a header of 16 to
# 32 bytes, 15 of hash index for a primary or unique key, 12 for each ordered index; a unique key is a table of its own
# (key, primary key, header, hash index: 71). Of a TEXT 256 bytes are in the row; the rest is a row of the part table.
# Bodies are 512 in the mean, and three of four are longer than 256: 224 + 8 in the row, and beside it 0.75 x (32 header
# + 15 hash + 20 key + 384).
TEXT = 232 + 0.75 * 451
USER = (
    32 + 21 + 87 + 15 + 71 + 3 * 12
)  # 3 integers, a date, 5 texts; keys id and nickname; ordered: nickname, auth, search
STORY = 32 + 17 + 52 + TEXT + 15 + 5 * 12  # ordered: id, writer, category, day, search
COMMENT = 32 + 29 + 52 + TEXT + 15 + 71 + 5 * 12  # unique: id; ordered: primary, story, parent, rating, search


class Rules:
    app_pools = 18
    """Servlets with a pool of their own (rubbos-app: Routes.all)."""

    def defaults(self, request: Request) -> dict[str, Any]:
        values: dict[str, Any] = {"middleware_writes": writes(request)}
        if request.chosen["dbms"] == CLUSTER:
            values["db_data_memory_bytes"] = data_memory(request)
        if request.traits["middleware"]["multiplexes"]:
            values |= shared_connections(request, self.app_pools)
        else:
            values |= held_connections(request, self.app_pools)
        return values

    def check(self, request: Request) -> None:
        """Raises ValueError if the middleware cannot keep replicas alike under users who write, if connections would be
        shut out, or if the cluster cannot be what is asked for."""
        check_connections(request, self.app_pools)
        if request.chosen["dbms"] == CLUSTER:
            check_cluster(request)
        replicas, chosen = request.counts["db"], request.chosen["middleware"]
        if request.writes and replicas > 1 and request.given.get("middleware_writes", writes(request)) != "all":
            able = ", ".join(name for name, allowed in request.allowed("middleware_writes").items() if "all" in allowed)
            letter = request.letters["dbms"]
            raise ValueError(
                f"middleware: mix {request.workload} writes, and {chosen} would write to one of {replicas} replicas "
                f"only; allowed with {replicas} {letter} replicas are {able} with middleware_writes=all, or one replica"
            )


def writes(request: Request) -> str:
    """Where writes go unless told otherwise: to all replicas if there are several and somebody writes."""
    can = request.allowed("middleware_writes")[request.chosen["middleware"]]
    return "all" if "all" in can and request.writes and request.counts["db"] > 1 else can[-1]


def app_connections(request: Request, servlets: int) -> int:
    """Connections that the app tier may open. All of them may be at one middleware."""
    pools = servlets if request.values["app_pool_mode"] == "per_servlet" else 1
    return request.counts["app"] * request.values["app_pool_size"] * pools


def shared_connections(request: Request, servlets: int) -> dict[str, int]:
    """Limits where clients share the middlewares' connections: each middleware has its own pool at each replica."""
    opened = request.counts["middleware"] * request.values["middleware_pool_max"]
    values = {"db_max_connections": max(request.values["db_max_connections"], opened + SPARE_CONNECTIONS)}
    if "most_clients" in request.traits["middleware"]:
        values["app_connections"] = app_connections(request, servlets)
    return values


def held_connections(request: Request, servlets: int) -> dict[str, int]:
    """Limits where each of the app tier's connections holds one at a replica while it lives: a smaller limit would not
    queue statements but shut connections out. All of them may be at one replica."""
    held, usual = app_connections(request, servlets), request.values["db_max_connections"]
    if request.chosen["dbms"] == CLUSTER:  # they are dealt out to the SQL nodes in turn
        return {"db_max_connections": max(usual, math.ceil(held / request.counts["middleware"]) + SPARE_CONNECTIONS)}
    return {"middleware_pool_max": held, "db_max_connections": max(usual, held + SPARE_CONNECTIONS)}


def check_connections(request: Request, servlets: int) -> None:
    """Raises ValueError for more connections than the middleware or the DBMS takes."""
    nodes, chosen = request.counts["middleware"], request.chosen["middleware"]
    opened, traits = app_connections(request, servlets), request.traits["middleware"]
    most = traits.get("most_clients", opened)
    if opened > most:
        raise ValueError(
            f"set app_pool_size: the app tier may open {opened} connections, and {chosen} takes up to {most}; give "
            "smaller pools, fewer app nodes, or app_pool_mode=shared"
        )
    given = request.given.get("middleware_pool_max")
    if given is not None and not traits["multiplexes"] and request.chosen["dbms"] != CLUSTER:
        places = nodes * given * (request.counts["db"] if traits.get("limits_replicas") else 1)
        if places < opened:
            raise ValueError(
                f"set middleware_pool_max: {given}, which lets {places} of the app tier's {opened} connections in, and "
                f"{chosen} does not share them; give a larger one, a smaller app_pool_size, or app_pool_mode=shared"
            )
    if request.chosen["dbms"] == CLUSTER:
        at_a_replica = math.ceil(opened / nodes)
    else:
        pools = nodes * request.values["middleware_pool_max"]
        at_a_replica = pools if traits["multiplexes"] else min(opened, pools)
    reserved = RESERVED_CONNECTIONS.get(request.chosen["dbms"], 0)
    limit = request.given.get("db_max_connections")
    if limit is not None and limit - reserved < at_a_replica:
        kept = f", and the DBMS keeps {reserved} for its superuser" if reserved else ""
        raise ValueError(
            f"set db_max_connections: {limit}, but {chosen} may open {at_a_replica} connections at a node{kept}; "
            f"allowed are {at_a_replica + SPARE_CONNECTIONS} or more, which leaves some for others, or smaller pools"
        )


# ---- MySQL Cluster ---------------------------------------------------------------------------------------------------


def stored_bytes(profile: str) -> float:
    """Bytes of one replica's rows and their indexes, estimated: rows that the generator makes x bytes of each."""
    users, new, old, of_new, of_old = PROFILES[profile]
    return users * USER + (new + old) * STORY + (new * of_new + old * of_old) * COMMENT


def data_memory(request: Request) -> int:
    """DataMemory that each data node needs, bytes, in whole 16 MiB."""
    share = request.values["db_replicas"] / request.counts["db"]
    used = stored_bytes(request.data_profile) * BLOATED * min(share, 1) + FRAGMENTS
    return 16 * MIB * math.ceil(used / FULL / (16 * MIB))


def check_cluster(request: Request) -> None:
    """Raises ValueError for numbers of nodes that NDB does not take, and for memory that does not hold the data."""
    counts, values, nodes = request.counts, request.values, request.memory_bytes["db"]
    replicas, data_nodes, slots = values["db_replicas"], counts["db"], values["db_sql_slots"]
    if data_nodes < replicas:
        raise ValueError(
            f"topo: {data_nodes} data node for {replicas} replicas; allowed are {replicas} or a multiple of it, or "
            "--set db_replicas=1"
        )
    if data_nodes % replicas:
        raise ValueError(
            f"topo: {data_nodes} data nodes cannot be shared out to groups of {replicas} replicas; allowed are "
            f"multiples of {replicas}, for example {data_nodes - 1} or {data_nodes + 1}"
        )
    if counts["middleware"] > slots:
        raise ValueError(
            f"topo: {counts['middleware']} SQL nodes, but the cluster's configuration has {slots} slots; allowed are "
            f"up to {slots}, or more with --set db_sql_slots={counts['middleware']} (up to 48)"
        )
    needed, given = data_memory(request), values["db_data_memory_bytes"]
    if given < needed:
        raise ValueError(
            f"set db_data_memory_bytes: {given} is too small for data {request.data_profile}, which need about "
            f"{needed} on each of {data_nodes} data nodes; give that much, a smaller profile, or more data nodes"
        )
    if nodes is not None and given + BESIDE_BYTES > nodes:
        raise ValueError(
            f"data: {request.data_profile} needs {given // MIB} MiB of DataMemory and about {BESIDE_BYTES // MIB} "
            f"MiB beside it, but a data node has {nodes // MIB} MiB at this scale; take a smaller profile, more data "
            "nodes, or a larger scale"
        )
