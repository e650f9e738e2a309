"""G6, E3: did connections cost the client time, and did the network or a service hide repeated work?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ntier_analysis.contracts import Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.host import in_run
from ntier_analysis.validity.registry import Finding, check, exact, sampled, undecidable

EXHAUSTED = "|".join(
    (
        "BindException",
        "Cannot assign requested address",
        "Address already in use",
        "Too many open files",
        "No buffer space available",
        "unable to create native thread",
    )
)
"""What Java says when a client has no port (EADDRNOTAVAIL, EADDRINUSE), file (EMFILE), buffer or thread left."""
PORTS = 60_999 - 32_768 + 1
"""Linux' net.ipv4.ip_local_port_range as it comes: connections that one client can have to one address."""
PORTS_FULL = 0.9
CONNECT_SHARE = 0.05
CONNECT_FLOOR_MS = 2.0
"""JMeter writes whole milliseconds: 0 and 1 ms are the same to it, and 5 % of a fast answer is less."""
CONNECT_TAIL_PCT = 1.0
MIN_N = 100
HIDDEN_PCT = 0.1
RESENT = (("tcp", "tcp_lost_per_s"), ("tcp", "tcp_retransmitted_per_s"), ("sysstat", "tcp_retransmits_per_s"))
"""Metrics in order of preference: lost segments alone, else also those that were sent again without need."""
OVERFLOWS = ("tcp_listen_overflows_per_s", "tcp_listen_drops_per_s")


@check("G6", "Client: ports, files or threads that ran out", "client_exhausted", required=False)
def exhausted(trial: RawTrial) -> Finding:
    """Failed interactions whose error says so, and clients whose sockets reached nine tenths of the ports."""
    run = trial.run_interactions
    said = run["code"].astype(str) + " " + run["failure"].astype(str)
    failed = int((~run["ok"] & said.str.contains(EXHAUSTED, regex=True)).sum())
    sockets = {c: in_run(trial, c, "sysstat", "tcp_sockets")["value"].max() for c in _with_sysstat(trial)}
    full = [c for c, most in sockets.items() if most >= PORTS_FULL * PORTS]
    most = max((v for v in sockets.values() if np.isfinite(v)), default=float("nan"))
    seen = f"at most {most:.0f} sockets" if np.isfinite(most) else "sockets: not collected"
    text = f"{failed} interactions failed for lack of a port, file or thread; {seen}"
    if full:
        text += f"; {', '.join(full)} used nine tenths of {PORTS} ports"
    return exact(float(failed + len(full)), 0.0, "events", text, len(run))


def _with_sysstat(trial: RawTrial) -> list[str]:
    return [c for c in trial.clients if trial.sysstat_file(c)]


@check("G6.connect", "Client: interactions that took long to connect", "slow_connect", required=False)
def connect_time(trial: RawTrial) -> Finding:
    """The 99th percentile is within the limit if at most 1 % of the interactions are beyond it, a share whose error is
    known."""
    run = trial.run_interactions
    good = run[run["ok"]]
    if len(good) < MIN_N:
        return undecidable(f"{len(good)} interactions, {MIN_N} are needed", n=len(good))
    limit_ms = max(CONNECT_SHARE * float(good["response_time_ms"].mean()), CONNECT_FLOOR_MS)
    slow = int((good["connect_ms"] > limit_ms).sum())
    share = slow / len(good)
    p99 = float(np.percentile(good["connect_ms"], 99))
    text = f"{slow} of {len(good)} took more than {limit_ms:.1f} ms to connect (99th percentile {p99:.0f} ms)"
    error = np.sqrt(max(share * (1 - share), 1 / len(good)) / len(good))
    return sampled(100 * share, CONNECT_TAIL_PCT, 100 * error, "pct", text, len(good))


def counted(trial: RawTrial, node: str, collector: str, metric: str) -> float:
    """Events in the run phase of a rate; NaN where it was not collected."""
    if trial.written_by(node, collector) is None:
        return float("nan")
    seen = in_run(trial, node, collector, metric)
    return float((seen["value"] * seen["interval_s"]).sum()) if len(seen) else float("nan")


def _resent(trial: RawTrial) -> dict[str, float]:
    """TCP segments per node, from the first collector that counted them."""
    resent = {}
    for name in trial.nodes:
        counts = [counted(trial, name, *source) for source in RESENT]
        first = next((c for c in counts if np.isfinite(c)), float("nan"))
        resent[name] = float(np.maximum(first, 0.0))  # D-SACKs of segments that were sent before the run
    return resent


@check("E3", "Hidden retries: TCP segments and requests that were sent again", "hidden_retries", required=False)
def hidden_retries(trial: RawTrial) -> Finding:
    """Against the interactions; their number is Poisson's. What a balancer or a pool repeats is not collected: this
    project's balancers are configured not to."""
    n = len(trial.run_interactions)
    seen = {k: v for k, v in _resent(trial).items() if np.isfinite(v)}
    client = _client_retries(trial)
    if n == 0 or not seen:
        return undecidable("retransmitted segments: not collected" if n else "no interactions", n=n)
    events = sum(seen.values()) + client
    worst = max(seen, key=lambda k: seen[k])
    resent = f"{sum(seen.values()):.0f} TCP segments lost and sent again (most by {worst}: {seen[worst]:.0f})"
    text = f"{resent}, {n} interactions"
    text += f"; {client:.0f} requests repeated by the client" if client else ""
    if lacking := [k for k in trial.nodes if k not in seen]:
        text += f"; not collected on {', '.join(lacking)}"
    return sampled(100 * events / n, HIDDEN_PCT, 100 * np.sqrt(events) / n, "pct", text, n)


def _client_retries(trial: RawTrial) -> float:
    """Requests that the client sent again during the run; 0 where it does not say."""
    start, end = trial.run
    inside = trial.progress[trial.progress["t_s"].between(start, end)]
    rise: pd.Series = inside.groupby("client")["retries"].agg(lambda v: v.max() - v.min())
    return float(rise.sum())


@check("E3.accept", "Connections that a full accept queue turned away", "accept_queue", required=False)
def accept_queues(trial: RawTrial) -> Finding:
    turned = {n: [counted(trial, n, "tcp", metric) for metric in OVERFLOWS] for n in trial.nodes}
    known = {n: np.nanmax(v) for n, v in turned.items() if np.isfinite(v).any()}
    if not known:
        return undecidable("not collected: no node has the counters ListenOverflows and ListenDrops (tcp.csv)")
    hit = [f"{n} ({trial.nodes[n].tier}) {v:.0f}" for n, v in known.items() if v > 0]
    finding = exact(sum(known.values()), 0.0, "connections", ", ".join(hit) or "none", len(known))
    lacking = [n for n in trial.nodes if n not in known]
    if finding.outcome is Outcome.PASS and lacking:
        return undecidable(f"not collected on {', '.join(lacking)}; none elsewhere", n=len(known))
    return finding
