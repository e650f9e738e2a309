"""What data cannot say: each thread has a connection to each node, two-phase commit needs a place for the transaction
of each, and PostgreSQL's own replication a node to replicate to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ntier_harness.systems.rules import Request

THREADS = 8  # alter_threads, unless it is given
# Deliveries from and to 7 other nodes: 14; collector, administrator, connections that are being closed.
SPARE_CONNECTIONS = 40
REPLICATED = ("logical", "quorum")  # workloads
MOST_DELAYED = 32  # alter threads beside a relay, which the driver allows (load/twophase/drive.py)


def connections(request: Request) -> int:
    """That a node needs: select threads are the load's workers."""
    return request.given.get("alter_threads", THREADS) + request.workers + SPARE_CONNECTIONS


class Rules:
    def defaults(self, request: Request) -> dict[str, Any]:
        threads = request.given.get("alter_threads", THREADS)
        places, most = (request.values[n] for n in ("node_max_prepared_transactions", "db_max_connections"))
        return {
            "node_max_prepared_transactions": max(places, threads),
            "db_max_connections": max(most, connections(request)),
        }

    def check(self, request: Request) -> None:
        """Raises ValueError if some thread could never prepare, or would wait for another one's transaction to end; and
        if there are too few nodes to replicate to."""
        nodes, standbys = request.counts["node"], request.given.get("standbys", 0)
        if request.workload in REPLICATED and nodes < 2:
            raise ValueError(f"topo: {nodes}; workload {request.workload} needs 2 nodes or more")
        threads = request.given.get("alter_threads", THREADS)
        if delay := request.given.get("delay_ms", 0):
            if request.workload in REPLICATED:
                raise ValueError(
                    f"set delay_ms: {delay}; workload {request.workload} allows 0 only (systems/two-phase-commit)"
                )
            if threads > MOST_DELAYED:
                raise ValueError(f"set alter_threads: {threads}; with delay_ms allowed are 0 to {MOST_DELAYED}")
        if request.workload == "quorum" and standbys >= nodes:
            raise ValueError(f"set standbys: {standbys}; with {nodes} nodes allowed are 0 to {nodes - 1}")
        most = request.given.get("db_max_connections")
        if most is not None and most < connections(request):
            raise ValueError(
                f"set db_max_connections: {most}; {threads} alter threads and {request.workers} select threads need "
                f"{connections(request)} or more"
            )
        places = request.given.get("node_max_prepared_transactions")
        if request.workload == "acid" and places is not None and places < threads:
            raise ValueError(
                f"set node_max_prepared_transactions: {places}; two-phase commit with {threads} alter threads needs "
                f"{threads} or more, or the workload base"
            )
