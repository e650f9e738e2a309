"""This machine as a node of any tier."""

from ntier_analysis.contracts.nodes import Node


def node(name: str, tier: str) -> Node:
    return Node(name=name, tier=tier, index=1, node_type="normal", address="127.0.0.1", role=tier)
