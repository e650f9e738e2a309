"""What data cannot say of RUBBoS: settings that follow from several others, and middlewares that would let replicas of
the database differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ntier_harness.systems.rules import Request

SPARE_CONNECTIONS = 40  # at a DBMS: collector, administrator, connections that are being closed; HAProxy's check: 20


class Rules:
    app_pools = 18
    """Servlets with a pool of their own (rubbos-app: Routes.all)."""

    def defaults(self, request: Request) -> dict[str, Any]:
        values: dict[str, Any] = {"middleware_writes": writes(request)}
        if not request.traits["middleware"]["multiplexes"]:
            values |= held_connections(request, self.app_pools)
        return values

    def check(self, request: Request) -> None:
        """Raises ValueError if the middleware cannot keep replicas alike under users who write."""
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


def held_connections(request: Request, servlets: int) -> dict[str, int]:
    """Limits where each of the app tier's connections holds one at a replica while it lives: a smaller limit would not
    queue statements but shut connections out. All of them may be at one replica."""
    values = request.values
    pools = servlets if values["app_pool_mode"] == "per_servlet" else 1
    held = request.counts["app"] * values["app_pool_size"] * pools
    usual = request.values["db_max_connections"]
    return {"middleware_pool_max": held, "db_max_connections": max(usual, held + SPARE_CONNECTIONS)}
