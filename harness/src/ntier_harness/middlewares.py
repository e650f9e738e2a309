"""Catalogue of the middlewares: what each can do, as data. A request is checked against it, and defaults come from it.

Each has a role `ansible/roles/<name>` with the interface of docs/decisions/middleware.md, whose argument_specs allow
the same policies; `terraform/targets/local` and `setup/images` know the same names (tests compare them)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ntier_harness.errors import RequestError, unknown


@dataclass(frozen=True)
class Middleware:
    """What a middleware can do."""

    name: str
    policies: Mapping[str, tuple[str, ...]]
    """Letter of a DBMS -> policies by which a replica is chosen, the default first."""
    granularity: str
    """What a choice is made for: `statement`, or `connection` (all its statements go where it went)."""
    ties: tuple[str, ...]
    """Rules among replicas that are equal to the policy, the default first; `none` if no policy compares replicas."""
    writes: tuple[str, ...]
    """Where a write may go: `all` replicas, or `first` alone (balanced connections: the connection's own)."""
    multiplexes: bool
    """Whether clients share its connections to the replicas, which it limits. Otherwise each connection of a client
    holds one at a replica (or at each of them) for as long as it lives."""
    login: str
    """`own`: logs in at the replicas with an account of its own; `client`: with the client's."""
    traces: bool = False
    """Whether it can write down every choice (middleware_trace)."""


LEAST, ROUND, RANDOM, CONNECTIONS = "least_pending", "round_robin", "random", "least_connections"
WEIGHTED = "weighted_random"  # ProxySQL's own; our weights are all alike, so that each replica is as likely

MIDDLEWARES = {
    m.name: m
    for m in (
        Middleware(
            "shardingsphere",
            {"M": (LEAST, ROUND, RANDOM), "P": (LEAST, ROUND, RANDOM)},
            granularity="statement", ties=("first", "random"), writes=("all", "first"), multiplexes=True, login="own",
            traces=True,
        ),
        Middleware(
            "haproxy",
            {"M": (CONNECTIONS, ROUND, RANDOM), "P": (CONNECTIONS, ROUND, RANDOM)},
            granularity="connection", ties=("round_robin",), writes=("first",), multiplexes=False, login="client",
        ),
        Middleware(
            "pgpool",
            {"P": (RANDOM,)},
            granularity="statement", ties=("none",), writes=("all",), multiplexes=False, login="client",
        ),
        Middleware(
            "pgbouncer",
            {"P": (ROUND,)},
            granularity="statement", ties=("none",), writes=("first",), multiplexes=True, login="own",
        ),
        Middleware(
            "mysqlrouter",
            {"M": (ROUND,)},
            granularity="connection", ties=("none",), writes=("first",), multiplexes=False, login="client",
        ),
        Middleware(
            "proxysql",
            {"M": (WEIGHTED,), "P": (WEIGHTED,)},
            granularity="statement", ties=("none",), writes=("first",), multiplexes=True, login="client",
        ),
    )
}  # fmt: skip
DEFAULT = "shardingsphere"
HINTS = {
    (
        "shardingsphere",
        CONNECTIONS,
    ): "; it balances statements, each of which takes one connection: least_pending is the same",
}
POLICIES = tuple(dict.fromkeys(p for m in MIDDLEWARES.values() for list_ in m.policies.values() for p in list_))
TIES = tuple(dict.fromkeys(t for m in MIDDLEWARES.values() for t in m.ties))


def find(name: str | None, dbms: str) -> Middleware:
    """The middleware of that name (None: the default). Raises RequestError if there is none, or if it does not speak
    the protocol of `dbms` (a topology's letter)."""
    if (name or DEFAULT) not in MIDDLEWARES:
        raise unknown("middleware", str(name), MIDDLEWARES)
    found = MIDDLEWARES[name or DEFAULT]
    if dbms not in found.policies:
        fitting = ", ".join(m.name for m in MIDDLEWARES.values() if dbms in m.policies)
        raise RequestError(f"middleware: {found.name} does not speak to DBMS {dbms}; allowed with {dbms} are {fitting}")
    return found


def writes(middleware: Middleware, *, mix_writes: bool, replicas: int) -> str:
    """Where writes go unless told otherwise: to all replicas if there are several and somebody writes."""
    return "all" if "all" in middleware.writes and mix_writes and replicas > 1 else middleware.writes[-1]


def check(
    middleware: Middleware, dbms: str, settings: Mapping[str, object], *, mix: str, mix_writes: bool, replicas: int
) -> None:
    """Raises RequestError if the middleware lacks what the settings ask for, or cannot keep replicas alike under a mix
    that writes."""
    for setting, allowed in (
        ("middleware_policy", middleware.policies[dbms]),
        ("middleware_tie", middleware.ties),
        ("middleware_writes", middleware.writes),
    ):
        if setting in settings and settings[setting] not in allowed:
            hint = HINTS.get((middleware.name, str(settings[setting])), "")
            raise RequestError(
                f"set {setting}: {middleware.name} has no {settings[setting]!r}; allowed are {', '.join(allowed)}{hint}"
            )
    if settings.get("middleware_trace") == "on" and not middleware.traces:
        able = ", ".join(m.name for m in MIDDLEWARES.values() if m.traces)
        raise RequestError(f"set middleware_trace: {middleware.name} writes no trace; those that do are {able}")
    default = writes(middleware, mix_writes=mix_writes, replicas=replicas)
    if mix_writes and replicas > 1 and settings.get("middleware_writes", default) != "all":
        able = ", ".join(m.name for m in MIDDLEWARES.values() if dbms in m.policies and "all" in m.writes)
        raise RequestError(
            f"middleware: mix {mix} writes, and {middleware.name} would write to one of {replicas} replicas only; "
            f"allowed with {replicas} {dbms} replicas are {able} with middleware_writes=all, or one replica"
        )
