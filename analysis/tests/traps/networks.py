"""Sweeps of simulated networks: what a user would import of them, judged."""

import numpy as np
from detector import observe
from detector.network import TIERS, Network, simulate
from detector.plan import Case, Plan, View
from ntier_analysis.importing.folder import prepared
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.tables import judge, sweep_verdict

TARGET = 20.0
"""Interactions per s at which what has `busy` 1 saturates."""
KNEE = 145
LOADS = (40, 80, 110, 190, 220, 250)


def plan(busy: dict, nodes: dict | None = None, quota: float | None = 0.2, **options) -> Plan:
    """A network with room everywhere but for `busy`: (tier, resource) -> share of the capacity used at TARGET."""
    room = {(tier, "cpu"): 0.2 for tier in TIERS} | {("db", "disk"): 0.1, ("web", "network"): 0.1}
    return Plan(
        rng=np.random.default_rng(1),
        nodes=dict.fromkeys(TIERS, 1) | (nodes or {}),
        target=TARGET,
        quota=quota,
        busy=room | busy,
        variation=dict.fromkeys(TIERS, 0.5),
        **options,
    )


def case_of(network: Network, users=LOADS, run_s: float = 60.0, view: View | None = None, seed: int = 1) -> Case:
    return Case("trap", "", "", network, {}, set(), tuple(users), run_s, 0.1, view or View(), seed, TARGET)


def frames(network: Network, users=LOADS, run_s: float = 60.0, view: View | None = None, seed: int = 1):
    """Contents of trials.csv, samples.csv and interactions.csv."""
    case = case_of(network, users, run_s, view, seed)
    runs = [simulate(network, n, 20.0, run_s, seed + i, 37.0 * i) for i, n in enumerate(users)]
    return observe.frames(case, runs)


def judged(network: Network, users=LOADS, run_s: float = 60.0, view: View | None = None, seed: int = 1) -> SweepVerdict:
    return judged_frames(*frames(network, users, run_s, view, seed))


def judged_frames(trials, samples, interactions) -> SweepVerdict:
    (tables,) = prepared(trials, samples, interactions).values()
    done = tables["interactions"]
    return sweep_verdict(
        "trap", tables["trials"], tables["samples"], tables["nodes"], None if done.empty else done
    ).verdict


def whole_evidence(trials, samples, interactions) -> list[str]:
    """Sentences of the sweep as the store keeps them: with suspects, and checks of the whole sweep."""
    (tables,) = prepared(trials, samples, interactions).values()
    made = judge("trap", tables["trials"], tables["samples"], tables["nodes"], tables["interactions"])
    return str(made["verdicts"]["evidence"].iloc[0]).split("\n")


def named(verdict: SweepVerdict) -> list[tuple]:
    return sorted((b.tier, b.resource, b.nodes) for b in verdict.bottlenecks)


def throughput(network: Network, users: int = 250) -> float:
    return simulate(network, users, 20.0, 200.0, 9).throughput


def said(verdict: SweepVerdict, text: str) -> bool:
    """Whether some sentence of the evidence, of the sweep or its highest load, has the text."""
    return any(text in sentence for sentence in [*verdict.evidence, *verdict.trials[-1][1].evidence])
