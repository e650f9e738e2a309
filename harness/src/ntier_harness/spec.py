"""What a sweep measures, as values: `Spec`. request.py makes it from options."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any

from ntier_harness.catalog import Mix, Phases
from ntier_harness.systems import System
from ntier_harness.systems.definition import Choice, Tier
from ntier_harness.systems.notation import Topology

USERS = "users"  # the factor of a sweep that names none, unless its system says otherwise
CLIENT = "client"  # name of the tier that load comes from, and of its node type, role and image
BARE_IMAGE = "base-trixie"  # of setup/images: a node before any role
DEFAULT_PRECISION, PRECISIONS = 0.05, (0.005, 0.5)
SEARCH_LEAST, SEARCH_MOST = 4, 6  # loads of a search for the capacity (analysis/bench/capacity_search.py)


@dataclass(frozen=True)
class Spec:
    """What one sweep measures. `users` are nominal; real users are `round(users x scale)`. `chosen`: of each variant of
    the system."""

    system: System
    topology: Topology
    chosen: dict[str, str] = field(hash=False)
    users: tuple[int, ...]
    """The factor's values, unless another variable is the factor; then one number."""
    mix: Mix
    phases: Phases
    reps: int
    target: str
    scale: float
    seed: int
    name: str
    data_profile: str
    search: str = "grid"
    """`capacity`: the loads are chosen between the lowest and the highest of `users`."""
    asked_precision: float | None = None
    """Half-width of the maximum's 95 % interval, relative, that a search for the capacity is to reach."""
    asked_loads: int | None = None
    """Loads that a search for the capacity may try, by the minutes it was given."""
    reps_by_minutes: bool = False
    """Whether `reps` is as many as the minutes allow: fewer are enough once the precision asked for is reached."""
    settings: dict[str, Any] = field(default_factory=dict)
    clients: int = 1
    """Load generators; they share the users."""
    trace_every: int = 0
    """One interaction of so many is followed through all tiers; 0: none."""
    above: int | None = None
    """Each load below this one is measured a second time, after so many users were there during the ramp-up and
    left."""

    factor: str = USERS
    """The variable that changes from trial to trial."""
    values: tuple[float, ...] = ()
    """Of another factor than the users."""

    @property
    def points(self) -> tuple[float, ...]:
        """The factor's values, ascending."""
        return self.users if self.factor == USERS else self.values

    def parameters(self, value: float | None = None) -> dict[str, Any]:
        """What the driver is told of the load's parameters; `value`: of the factor, if it is one of them."""
        known = self.system.definition.load.parameters
        values = {name: self.settings.get(name, p.default) for name, p in known.items()}
        if value is None:
            return values
        return values | {self.factor: int(value) if known[self.factor].whole else value}

    @property
    def precision(self) -> float:
        """With minutes to use, and no precision asked for, the search goes on as long as they last."""
        return self.asked_precision or (PRECISIONS[0] if self.asked_loads else DEFAULT_PRECISION)

    @property
    def most_loads(self) -> int:
        """Loads that a search may try: a third of the grid's, but enough for a knee and a plateau; if a precision is
        asked for, as many as it ever may, since it uses of the grid only where that begins and ends."""
        if self.asked_loads:
            return self.asked_loads
        if self.asked_precision:
            return SEARCH_MOST
        return min(SEARCH_MOST, max(SEARCH_LEAST, len(self.users) // 3))

    @property
    def most_loads_if_few(self) -> int:
        """The same while fewer than three of them lie beyond the knee, where the maximum is a lower bound only."""
        return self.asked_loads or SEARCH_MOST

    @property
    def middleware(self) -> str:
        """Choice of the variant that is a part of the sweep's key; `none` if the system has none."""
        name = keyed(self.system)
        return self.chosen[name] if name else "none"

    @property
    def sweep(self) -> str:
        """Key of the sweep: topology, mix, the keyed variant and a name where there are such (`1-2-1M.reads.nginx`);
        that of another system than the default one begins with the system's name."""
        parts = [] if self.system.is_default else [self.system.name]
        parts += [self.topology.slug, self.mix.name]
        parts += [self.middleware] if keyed(self.system) else []
        return ".".join([*parts, self.name] if self.name else parts)

    @property
    def most_users(self) -> int:
        """That are there at any time, nominal."""
        return max(self.users[-1], self.above or 0)

    def real_users(self, users: int) -> int:
        scale = self.scale if self.system.definition.load.factor.scales else 1
        return max(1, round(users * scale))

    node_types: dict[str, dict[str, float]] = field(default_factory=dict)

    def node_type(self, tier: str) -> str:
        return self.topology.node_types.get(tier) or self.system.definition.tier(tier).node_type

    @property
    def choices(self) -> list[Choice]:
        """What was chosen of each variant."""
        variants = self.system.definition.variants
        return [variants[name].choices[choice] for name, choice in self.chosen.items()]

    def tier(self, name: str) -> Tier:
        """A tier as it is with the chosen variants."""
        tier = self.system.definition.tier(name)
        for change in (choice.tiers[name] for choice in self.choices if name in choice.tiers):
            tier = tier.model_copy(update=dict(change) | {k: getattr(tier, k) for k, v in change if v is None})
        return tier

    @property
    def jvm_tiers(self) -> list[str]:
        """Tiers whose servers may be JVMs, which compile while they serve."""
        return [name for name in self.topology.counts if self.tier(name).jvm]

    def memory_bytes(self, tier: str) -> int | None:
        """Of each of its nodes, where this machine carries them all; as terraform/modules/topology has it."""
        from ntier_harness.targets import kind

        what = self.node_types[self.node_type(tier)]
        if not kind(self.target).scaled or "memory_bytes" not in what:
            return None
        floor = what.get("memory_floor_bytes", self.tier(tier).memory_floor_bytes)
        return max(math.ceil(what["memory_bytes"] * self.scale), int(floor))

    def roles(self, tier: str) -> list[str]:
        """Ansible roles of a tier's nodes, in order: its own and those of the chosen variants."""
        variants = self.system.definition.variants
        chosen = [variants[v].choices[c] for v, c in self.chosen.items() if variants[v].tier == tier]
        return [*self.system.definition.tier(tier).roles, *(role for choice in chosen for role in choice.roles)]

    def role(self, tier: str) -> str:
        """What a node of the tier is: its last role."""
        return (self.roles(tier) or [tier])[-1]

    def image(self, tier: str) -> str:
        """The image of its nodes on target local, by its name in `setup/images`."""
        definition, role = self.system.definition, self.role(tier)
        own = self.data_image if tier == self.data_tier and self.data_in_image else role
        built = role in self.built_roles and not self.system.role(role)
        return definition.tier(tier).image or (own if built else BARE_IMAGE)

    built_roles: tuple[str, ...] = ()
    """Roles that set-up makes images of."""

    @property
    def data_tier(self) -> str | None:
        """The tier whose nodes hold the data."""
        return self.system.definition.data.tier if self.system.definition.data else None

    @property
    def data_in_image(self) -> bool:
        """Whether images of the nodes that hold the data have them."""
        data = self.system.definition.data
        return data is not None and data.in_image and all(c.data is None or c.data.in_image for c in self.choices)

    @property
    def loads_data(self) -> bool:
        """Whether roles load generated data at deployment, because no image holds them."""
        data = self.system.definition.data
        return data is not None and bool(data.generate) and not self.data_in_image

    @property
    def showing_tier(self) -> str | None:
        """The tier whose nodes show what the data are: those that hold them, unless a choice says otherwise."""
        shown = (c.data.shown_by for c in self.choices if c.data)
        return next(filter(None, shown), self.data_tier)

    @property
    def data_image(self) -> str:
        """Name of the image of set-up's that has its data, and of the folder with what set-up left of them."""
        return f"{self.role(self.data_tier)}-{self.data_profile}" if self.data_tier else ""

    @property
    def data_folder(self) -> str:
        """Name of the folder of the data that were generated for it. Another system, profile, seed or command makes
        other data."""
        data = self.system.definition.data
        if data is None:
            return ""
        made = hashlib.sha256(json.dumps([data.seed, data.generate]).encode()).hexdigest()[:8]
        return f"{self.system.name}-{self.data_profile}-{made}"

    @property
    def restores(self) -> bool:
        """Whether users change the data, which are then restored before each trial."""
        data = self.system.definition.data
        return self.mix.writes and data is not None and data.restores

    @property
    def images(self) -> tuple[str, ...]:
        """Images that its nodes are made from, on targets that have such. Set-up is derived from this, and so is what
        it leaves out."""
        from ntier_harness.targets import kind

        return kind(self.target).images(self)

    @property
    def shares(self) -> float:
        """Sum of the CPU shares of all nodes, clients not included, cores at scale 1."""
        return cpu_shares(self.system, self.topology, self.node_types)


def keyed(system: System) -> str | None:
    """The variant that is a part of each sweep's key, which the option --middleware chooses."""
    return next((name for name, variant in system.definition.variants.items() if variant.keyed), None)


def cpu_shares(system: System, topology: Topology, node_types: dict[str, dict[str, float]]) -> float:
    """CPU cores that the nodes at their quota and the clients use at scale 1."""

    def share(tier: str) -> float:
        usual = system.definition.tier(tier).node_type
        return node_types[topology.node_types.get(tier, usual)]["cpu_share"]

    driver = system.definition.load.driver
    clients = driver.cores + driver.cores_per_node * topology.node_count
    return clients + sum(count * share(tier) for tier, count in topology.counts.items())
