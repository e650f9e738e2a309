"""A request as values: `Spec` says what to measure; it is parsed once from options and printed back the same."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from ntier_analysis.contracts.topology import DBMS, Topology, TopologyError

from ntier_harness import catalog, middlewares
from ntier_harness.catalog import Mix, Phases
from ntier_harness.errors import RequestError, unknown

MAX_USERS = 100_000
MAX_REAL_USERS = 15_000  # of a client: one JVM thread per user; pids.max of a common container is 17,500
MAX_CLIENTS = 16  # as terraform/modules/topology
DEFAULT_PRECISION, PRECISIONS = 0.05, (0.005, 0.5)
SEARCH_LEAST, SEARCH_MOST = 4, 6  # loads of a search for the capacity (analysis/bench/capacity_search.py)


@dataclass(frozen=True)
class Spec:
    """What one sweep measures. `users` are nominal; real users are `round(users x scale)`."""

    topology: Topology
    users: tuple[int, ...]
    mix: Mix
    phases: Phases
    reps: int
    middleware: str
    target: str
    scale: float
    seed: int
    name: str
    data_profile: str
    search: str = "grid"
    """`capacity`: the loads are chosen between the lowest and the highest of `users`."""
    asked_precision: float | None = None
    """Half-width of the maximum's 95 % interval, relative, that a search for the capacity is to reach."""
    settings: dict[str, Any] = field(default_factory=dict)
    clients: int = 1
    """Load generators; they share the users."""

    @property
    def precision(self) -> float:
        return self.asked_precision or DEFAULT_PRECISION

    @property
    def most_loads(self) -> int:
        """Loads that a search may try: a third of the grid's, or more if a precision is asked for; but enough for a
        knee and a plateau."""
        asked = len(self.users) if self.asked_precision else len(self.users) // 3
        return min(SEARCH_MOST, max(SEARCH_LEAST, asked))

    @property
    def sweep(self) -> str:
        """Key of the sweep: `1-1-1-1M.browse_only.shardingsphere[.name]`."""
        parts = [self.topology.slug, self.mix.name, self.middleware]
        return ".".join([*parts, self.name] if self.name else parts)

    def real_users(self, users: int) -> int:
        return max(1, round(users * self.scale))

    node_types: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def db_type(self) -> str:
        return "low_cost" if self.topology.low_cost else "normal"

    @property
    def images(self) -> tuple[str, ...]:
        """Images that its nodes are made from on target local, as `setup/images` names them; elsewhere there are none.
        Set-up is derived from this, and so is what it leaves out."""
        if self.target != "local":
            return ()
        return ("web", "app", self.middleware, f"{DBMS[self.topology.dbms]}-{self.data_profile}", "client")

    @property
    def shares(self) -> float:
        """Sum of the CPU shares of all nodes, clients not included, cores at scale 1."""
        return cpu_shares(self.topology, self.node_types)


def cpu_shares(topology: Topology, node_types: dict[str, dict[str, float]]) -> float:
    counts = dict(topology.counts)
    db = counts.pop("db")
    normal, of_db = (node_types[t]["cpu_share"] for t in ("normal", "low_cost" if topology.low_cost else "normal"))
    return sum(counts.values()) * normal + db * of_db


def parse_topology(text: str | None) -> Topology:
    if not text:
        raise RequestError("topo: missing; give a topology as W/A/C/D and a DBMS letter, for example 1/1/1/1M")
    try:
        topology = Topology.parse(text)
    except TopologyError as error:
        raise RequestError(f"topo: {error}") from None
    if topology.dbms not in catalog.SUPPORTED_DBMS:
        known = ", ".join(f"{letter} ({name})" for letter, name in catalog.SUPPORTED_DBMS.items())
        raise RequestError(f"topo: {text!r}: DBMS {topology.dbms} is not built yet; allowed are {known}")
    return topology


def parse_users(text: str) -> tuple[int, ...]:
    """`first:last:step` (inclusive), or a list with commas; each 1..MAX_USERS. Sorted, without doubles."""
    ranges = re.fullmatch(r"(\d{1,9}):(\d{1,9}):(\d{1,9})", text)
    if ranges:
        first, last, step = (int(n) for n in ranges.groups())
        if step < 1 or first > last:
            raise RequestError(f"users: {text!r}: expected first <= last and a step of at least 1")
        if (last - first) // step > 998:
            raise RequestError(f"users: {text!r} gives {(last - first) // step + 1} loads; at most 999 are allowed")
        users = list(range(first, last + 1, step))
    elif re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        users = [int(n) for n in text.split(",")]
    else:
        raise RequestError(f"users: {text!r}: expected first:last:step (1000:13000:1000) or a list (1000,4000)")
    for n in users:
        if not 1 <= n <= MAX_USERS:
            raise RequestError(f"users: {n} is out of range; allowed are 1..{MAX_USERS} nominal users")
    return tuple(sorted(set(users)))


def whole(option: str, text: Any, low: int, high: int) -> int:
    try:
        value = int(text)
    except (TypeError, ValueError):
        raise RequestError(f"{option}: {text!r} is not a whole number; allowed are {low}..{high}") from None
    if not low <= value <= high:
        raise RequestError(f"{option}: {value} is out of range; allowed are {low}..{high}")
    return value


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise unknown(option, value, allowed)
    return value


def _parse_precision(text: Any, search: str) -> float | None:
    if not text:
        return None
    if search != "capacity":
        raise RequestError("precision: is the goal of a search; give it with --search capacity")
    low, high = PRECISIONS
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"precision: {text!r} is not a number; allowed are {low}..{high}") from None
    if not low <= value <= high:
        raise RequestError(f"precision: {value:g} is out of range; allowed are {low}..{high} (0.05 is +-5 %)")
    return value


def make_spec(options: dict[str, Any], workloads: Any, cores: int) -> Spec:
    """Options (texts as typed, None = default) -> Spec. Raises RequestError for the first wrong one."""
    from ntier_harness.scale import parse_scale
    from ntier_harness.soft import parse_settings

    topology = parse_topology(options.get("topo"))
    target = _one_of("target", options.get("target") or "local", catalog.TARGETS)
    search = options.get("search") or "grid"
    if search not in catalog.SEARCHES:
        raise unknown("search", search, catalog.SEARCHES)
    scale_text = str(options.get("scale") or "auto")
    node_types = catalog.node_types(workloads.parent)
    default_phases = catalog.default(workloads, "default_phases")
    spec = Spec(
        topology=topology,
        users=parse_users(options.get("users") or catalog.default(workloads, "default_users")),
        mix=catalog.read_mix(options.get("mix") or catalog.DEFAULT_MIX, workloads),
        phases=catalog.parse_phases(options.get("phases") or default_phases, workloads),
        reps=whole("reps", options.get("reps") or 1, 1, 99),
        middleware=middlewares.find(options.get("middleware") or None, topology.dbms).name,
        target=target,
        scale=parse_scale(scale_text, cores, cpu_shares(topology, node_types))
        if target == "local"
        else full_scale(scale_text, target),
        seed=whole("seed", options.get("seed") or 1, 0, 2**31 - 1),
        name="",
        data_profile=_one_of("data", options.get("data") or catalog.DEFAULT_PROFILE, catalog.PROFILES),
        search=search,
        asked_precision=_parse_precision(options.get("precision"), search),
        settings=parse_settings(options.get("set") or ()),
        node_types=node_types,
        clients=whole("clients", options.get("clients") or 1, 1, MAX_CLIENTS),
    )
    middlewares.check(
        middlewares.MIDDLEWARES[spec.middleware], topology.dbms, spec.settings,
        mix=spec.mix.name, mix_writes=spec.mix.writes, replicas=topology.counts["db"],
    )  # fmt: skip
    most = spec.real_users(spec.users[-1])
    if most > MAX_REAL_USERS * spec.clients:
        of = f"{MAX_REAL_USERS}" + (f" for each of {spec.clients} clients" if spec.clients > 1 else "")
        raise RequestError(f"users: {spec.users[-1]} at scale {spec.scale} are {most} real users; at most {of}")
    name = options.get("name")
    explicit_scale = "" if scale_text == "auto" or target != "local" else f"s{spec.scale:g}".replace(".", "_")
    name = derived_name(spec, default_phases, explicit_scale) if name is None or name == "" else name
    if name and not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise RequestError(
            f"name: {name!r}: allowed are up to 40 of a-z, 0-9, _ and -, beginning with a letter or digit"
        )
    return Spec(**{**spec.__dict__, "name": name})


def full_scale(text: str, target: str) -> float:
    """The scale where each node is a machine of its own: 1. Raises RequestError for another one."""
    if text not in ("auto", "1", "1.0"):
        raise RequestError(f"scale: {text}: target {target} has whole machines, nothing is scaled; allowed is 1")
    return 1.0


def derived_name(spec: Spec, default_phases: str, explicit_scale: str) -> str:
    """What distinguishes this sweep from the default one, so that differing experiments never share a folder."""
    parts = [] if spec.phases.name == default_phases else [spec.phases.name.replace(".", "_")]
    parts += [spec.target] if spec.target != catalog.TARGETS[0] else []
    parts += [explicit_scale] if explicit_scale else []
    parts += [spec.data_profile] if spec.data_profile != catalog.DEFAULT_PROFILE else []
    parts += [f"seed{spec.seed}"] if spec.seed != 1 else []
    parts += [f"clients{spec.clients}"] if spec.clients != 1 else []
    if spec.settings:
        text = json.dumps(spec.settings, sort_keys=True)
        parts.append("x" + hashlib.sha256(text.encode()).hexdigest()[:6])
    return "-".join(parts)
