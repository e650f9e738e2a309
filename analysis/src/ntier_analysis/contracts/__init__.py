"""What the programs hand to each other, written down once: topology notation, nodes, manifest.

Only pydantic and the standard library are used here, so that `ntier --help` stays instant; the harness imports nothing
else of the analysis package.
"""

from ntier_analysis.contracts.manifest import (
    MANIFEST_SCHEMA,
    Check,
    FileEntry,
    Host,
    Manifest,
    Outcome,
    Phase,
    State,
    Validity,
)
from ntier_analysis.contracts.nodes import Node, read_nodes
from ntier_analysis.contracts.topology import Topology, TopologyError

__all__ = [
    "MANIFEST_SCHEMA",
    "Check",
    "FileEntry",
    "Host",
    "Manifest",
    "Node",
    "Outcome",
    "Phase",
    "State",
    "Topology",
    "TopologyError",
    "Validity",
    "read_nodes",
]
