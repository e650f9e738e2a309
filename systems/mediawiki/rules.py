"""What data cannot say of MediaWiki: each process of PHP-FPM has connections of its own to the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ntier_harness.systems.rules import Request

CONNECTIONS = 2  # of a process: MediaWiki writes the table objectcache outside of its transaction, by a second one
SPARE_CONNECTIONS = 40  # collector, administrator, connections that are being closed
RESERVED_CONNECTIONS = {"postgresql": 3}
"""Only the superuser gets these of the DBMS's connections (superuser_reserved_connections). MySQL has one beside."""


class Rules:
    def defaults(self, request: Request) -> dict[str, Any]:
        opened = CONNECTIONS * processes(request)
        return {"db_max_connections": max(request.values["db_max_connections"], opened + SPARE_CONNECTIONS)}

    def check(self, request: Request) -> None:
        """Raises ValueError if not even one connection of each process is accepted."""
        limit, needed = request.values["db_max_connections"], processes(request)
        reserved = RESERVED_CONNECTIONS.get(request.chosen["dbms"], 0)
        if limit - reserved < needed:
            kept = f", and the DBMS keeps {reserved} for its superuser" if reserved else ""
            raise ValueError(
                f"set db_max_connections: {limit}, but {needed} processes of PHP-FPM have a connection each{kept}; "
                f"allowed are {needed + reserved} or more ({CONNECTIONS * needed + SPARE_CONNECTIONS} leave room), or "
                "fewer app_children"
            )


def processes(request: Request) -> int:
    return request.counts["app"] * request.values["app_children"]
