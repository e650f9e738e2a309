"""Who connects to whom."""

from __future__ import annotations

from typing import Any

from ntier_harness.spec import CLIENT, Spec


def services(spec: Spec) -> dict[str, list[dict[str, Any]]]:
    """Tier -> who may connect to its nodes, [{from, port}]: the tiers that ask it, and clients where the load enters
    and where requests verify. The packet filter opens nothing else but SSH."""
    d, there = spec.system.definition, spec.topology.counts
    ports = {tier: spec.tier(tier).ports for tier in there}
    for variant, choice in spec.chosen.items():
        ports |= d.variants[variant].choices[choice].ports
    asked = [(d.load.entry.tier, CLIENT, d.load.entry.port)]
    asked += [(r.tier, CLIENT, r.port) for r in d.verify.requests]
    talks = [(tier, asker) for asker in there for tier in spec.tier(asker).talks_to]
    asked += [(tier, asker, port) for tier, asker in talks for port in ports.get(tier, [])]
    return {
        tier: [{"from": asker, "port": port} for asked_tier, asker, port in dict.fromkeys(asked) if asked_tier == tier]
        for tier in there
    }
