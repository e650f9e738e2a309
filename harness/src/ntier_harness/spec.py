"""A request as values: `Spec` says what to measure; it is parsed once from options and printed back the same."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.wording import counted

from ntier_harness import catalog, systems
from ntier_harness.catalog import Mix, Phases
from ntier_harness.errors import RequestError, unknown
from ntier_harness.systems import System, notation
from ntier_harness.systems.definition import Choice, Data, Tier
from ntier_harness.systems.notation import Topology

USERS = "users"  # the factor of a sweep that names none, unless its system says otherwise
CLIENT = "client"  # name of the tier that load comes from, and of its node type, role and image
BARE_IMAGE = "base-trixie"  # of setup/images: a node before any role
MAX_REAL_USERS = 15_000  # of a client: one JVM thread per user; pids.max of a common container is 17,500
MAX_CLIENTS = 16  # as terraform/modules/topology
MAX_TRACE_EVERY = 1_000_000
MAX_POINTS = 999  # values of a factor in a sweep
ANY_USERS = (1, 100_000)
ABOVE_RAMP_UP_S = 4.0  # least ramp-up of a trial from above: a second each to come, to be there, and two to come back
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
        return values if value is None else values | {self.factor: value}

    @property
    def precision(self) -> float:
        """With minutes to use, and no precision asked for, the search goes on as long as they last."""
        return self.asked_precision or (PRECISIONS[0] if self.asked_loads else DEFAULT_PRECISION)

    @property
    def most_loads(self) -> int:
        """Loads that a search may try: a third of the grid's, or more if a precision is asked for; but enough for a
        knee and a plateau."""
        if self.asked_loads:
            return self.asked_loads
        asked = len(self.users) if self.asked_precision else len(self.users) // 3
        return min(SEARCH_MOST, max(SEARCH_LEAST, asked))

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
        own = self.data_folder if tier == self.data_tier and self.data_in_image else role
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
        """Whether roles load generated data at deployment, because no image can hold them."""
        data = self.system.definition.data
        return data is not None and data.in_image and not self.data_in_image

    @property
    def showing_tier(self) -> str | None:
        """The tier whose nodes show what the data are: those that hold them, unless a choice says otherwise."""
        shown = (c.data.shown_by for c in self.choices if c.data)
        return next(filter(None, shown), self.data_tier)

    @property
    def data_folder(self) -> str:
        """Name of the folder of its generated data, and of the image that has them."""
        return f"{self.role(self.data_tier)}-{self.data_profile}" if self.data_tier else ""

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


def parse_topology(text: str | None, system: System) -> Topology:
    if not text:
        forms = " or ".join("/".join(form) for form in system.definition.notation.forms)
        raise RequestError(
            f"topo: missing; give the nodes of each tier ({forms}), for example {system.definition.notation.example}"
        )
    try:
        return notation.parse(system.definition, text)
    except RequestError as error:
        raise RequestError(f"topo: {error}") from None


def choose(system: System, topology: Topology, given: dict[str, str]) -> dict[str, str]:
    """Choice of each variant: by the topology's letters, by option, or the default. Raises RequestError for a choice
    that does not exist, or that does not work with another one."""
    variants, chosen = system.definition.variants, {}
    for name in given:
        if name not in variants or name in topology.letters:
            allowed = [v for v in variants if v not in topology.letters]
            raise unknown("variant", name, allowed)
    for name, variant in variants.items():
        there = [c for c, what in variant.choices.items() if what.available]
        choice = given.get(name) or topology.letters.get(name) or _usual(system, name, topology.letters)
        if choice not in there:
            raise unknown(name, str(choice), there)
        chosen[name] = choice
    for name, choice in chosen.items():
        for other, fits in variants[name].choices[choice].with_.items():
            if chosen[other] not in fits:
                letter = variants[other].choices[chosen[other]].letter or chosen[other]
                fitting = [
                    c
                    for c, what in variants[name].choices.items()
                    if chosen[other] in what.with_.get(other, [chosen[other]])
                ]
                raise RequestError(
                    f"{name}: {choice} does not work with {variants[other].title} {letter}; "
                    f"allowed with {letter} are {', '.join(fitting)}"
                )
    return chosen


def _usual(system: System, name: str, letters: dict[str, str]) -> str | None:
    """A variant's default; the first choice that works with the letters, if the default does not."""
    variant = system.definition.variants[name]

    def works(choice: str) -> bool:
        with_ = variant.choices[choice].with_
        return all(letters.get(other, fits[0]) in fits for other, fits in with_.items() if fits)

    if variant.default is None or works(variant.default):
        return variant.default
    return next((c for c, what in variant.choices.items() if what.available and works(c)), variant.default)


def parse_variants(options: dict[str, Any], system: System) -> dict[str, str]:
    """`name=choice` texts, and --middleware for the one that is keyed."""
    given = {}
    for pair in options.get("variant") or ():
        name, sep, choice = pair.partition("=")
        if not sep:
            raise RequestError(
                f"variant: {pair!r}: expected name=choice; names are {', '.join(system.definition.variants)}"
            )
        given[name] = choice
    if options.get("middleware"):
        if (name := keyed(system)) is None:
            raise RequestError(f"middleware: system {system.name} has none")
        given[name] = options["middleware"]
    return given


def parse_users(text: str, allowed: tuple[float, float]) -> tuple[int, ...]:
    """`first:last:step` (inclusive), or a list with commas. Sorted, without doubles."""
    ranges = re.fullmatch(r"(\d{1,9}):(\d{1,9}):(\d{1,9})", text)
    if ranges:
        first, last, step = (int(n) for n in ranges.groups())
        if step < 1 or first > last:
            raise RequestError(f"users: {text!r}: expected first <= last and a step of at least 1")
        if (last - first) // step >= MAX_POINTS:
            raise RequestError(
                f"users: {text!r} gives {(last - first) // step + 1} loads; at most {MAX_POINTS} are allowed"
            )
        users = list(range(first, last + 1, step))
    elif re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        users = [int(n) for n in text.split(",")]
    else:
        raise RequestError(f"users: {text!r}: expected first:last:step (1000:13000:1000) or a list (1000,4000)")
    low, high = allowed
    for n in users:
        if not low <= n <= high:
            raise RequestError(f"users: {n} is out of range; allowed are {low}..{high} nominal users")
    return tuple(sorted(set(users)))


def parse_factor(options: dict[str, Any], system: System) -> tuple[str, tuple[float, ...], tuple[int, ...]]:
    """The factor's name, its values (none if it is the users), and the users. `--factor name=values`; without it the
    system's own factor. Raises RequestError."""
    load = system.definition.load
    given, users = options.get("factor"), options.get("users")
    name, text = load.factor.name, load.factor.default
    if given:
        name, sep, text = given.partition("=")
        numbers = [USERS, *(n for n, p in load.parameters.items() if p.range)]
        if not sep or name not in numbers:
            raise unknown("factor", given, [f"{n}=..." for n in numbers])
        if name == USERS and users:
            raise RequestError("factor: users are given twice, by --users and --factor")
    elif users and (name == USERS or not users.isdigit()):  # several numbers of users make them the factor
        name, text = USERS, users
    if name == USERS:
        return USERS, (), parse_users(text, load.factor.range if load.factor.name == USERS else ANY_USERS)
    number = parse_users(users, ANY_USERS) if users else (load.workers,)
    if len(number) > 1:
        raise RequestError(f"users: {users!r}: {name} is the factor; give one number of users")
    return name, parse_values(name, text, load.parameters[name].range), number


def parse_values(name: str, text: str, allowed: tuple[float, float]) -> tuple[float, ...]:
    """Numbers with commas, or `first:last:step` (inclusive). Sorted, without doubles."""
    try:
        parts = [float(part) for part in re.split("[:,]", text)]
    except ValueError:
        parts = []
    if not parts or (":" in text and (len(parts) != 3 or "," in text or parts[2] <= 0 or parts[0] > parts[1])):
        raise RequestError(f"factor {name}: {text!r}: expected first:last:step or a list (0.1,0.5,1)")
    if ":" in text:
        first, last, step = parts
        count = int((last - first) / step + 1e-9) + 1
        if count > MAX_POINTS:
            raise RequestError(f"factor {name}: {text!r} gives {count} values; at most {MAX_POINTS} are allowed")
        parts = [round(first + i * step, 12) for i in range(count)]
    low, high = allowed
    for value in parts:
        if not low <= value <= high:
            raise RequestError(f"factor {name}: {value:g} is out of range; allowed are {low}..{high}")
    return tuple(sorted(set(parts)))


def whole(option: str, text: Any, low: int, high: int) -> int:
    try:
        value = int(text)
    except (TypeError, ValueError):
        raise RequestError(f"{option}: {text!r} is not a whole number; allowed are {low}..{high}") from None
    if not low <= value <= high:
        raise RequestError(f"{option}: {value} is out of range; allowed are {low}..{high}")
    return value


def _one_of(option: str, value: str, allowed: Iterable[str]) -> str:
    if value not in allowed:
        raise unknown(option, value, allowed)
    return value


def _parse_precision(text: Any, search: str) -> float | None:
    if not text:
        return None
    if search != "capacity":
        raise RequestError("precision: only a search uses it; give it with --search capacity")
    low, high = PRECISIONS
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"precision: {text!r} is not a number; allowed are {low}..{high}") from None
    if not low <= value <= high:
        raise RequestError(f"precision: {value:g} is out of range; allowed are {low}..{high} (0.05 is +-5 %)")
    return value


def _parse_trace(text: Any, system: System) -> int:
    if not text:
        return 0
    if not system.definition.load.driver.traces:
        raise RequestError(f"trace: system {system.name} carries no trace context (load.driver.traces)")
    return whole("trace", text, 0, MAX_TRACE_EVERY)


def make_spec(options: dict[str, Any], root: Path, cores: int) -> Spec:
    """Options (texts as typed, None = default) -> Spec. `root`: the checkout. Raises RequestError for the first wrong
    one."""
    from ntier_harness import settings
    from ntier_harness.targets import NAMES, kind

    system = systems.find(root, options.get("system") or systems.default(root))
    load, data = system.definition.load, system.definition.data
    topology = parse_topology(options.get("topo"), system)
    target = options.get("target") or NAMES[0]
    if not kind(target).own_machines and not system.definition.deploys:
        able = ", ".join(name for name in NAMES if kind(name).own_machines)
        raise RequestError(f"target: system {system.name} runs already (deploy: none); allowed are {able}")
    search = options.get("search") or "grid"
    if search not in catalog.SEARCHES:
        raise unknown("search", search, catalog.SEARCHES)
    factor, values, users = parse_factor(options, system)
    if search == "capacity" and factor != USERS:
        raise RequestError(f"search: capacity searches over users, but the factor is {factor}; allowed is grid")
    scale_text = str(options.get("scale") or "auto")
    node_types = catalog.node_types(root)
    default_phases = catalog.default_phases(system)
    spec = Spec(
        factor=factor,
        values=values,
        system=system,
        topology=topology,
        chosen={},
        users=users,
        mix=catalog.read_mix(options.get("mix") or load.default_workload, system),
        phases=catalog.parse_phases(options.get("phases") or default_phases, system),
        reps=whole("reps", options.get("reps") or 1, 1, 99),
        target=target,
        scale=kind(target).parse_scale(scale_text, cores, cpu_shares(system, topology, node_types)),
        seed=whole("seed", options.get("seed") or 1, 0, 2**31 - 1),
        name="",
        data_profile=_data_profile(options.get("data"), data),
        search=search,
        asked_precision=_parse_precision(options.get("precision"), search),
        settings=settings.parse(system, options.get("set") or ()),
        node_types=node_types,
        built_roles=systems.built_roles(root),
        clients=whole("clients", options.get("clients") or 1, 1, MAX_CLIENTS),
        trace_every=_parse_trace(options.get("trace"), system),
        above=_parse_above(options.get("above"), system),
    )
    spec = replace(spec, chosen=choose(system, topology, parse_variants(options, system)))
    settings.check(spec)
    least, most = spec.real_users(spec.users[0]), spec.real_users(spec.most_users)
    if least < spec.clients:
        real = counted(least, "real user")
        raise RequestError(
            f"users: {spec.users[0]} at scale {spec.scale} are {real} for {spec.clients} clients; "
            "each needs one at least"
        )
    if most > MAX_REAL_USERS * spec.clients:
        of = f"{MAX_REAL_USERS}" + (f" for each of {spec.clients} clients" if spec.clients > 1 else "")
        option = "users" if spec.most_users == spec.users[-1] else "above"
        raise RequestError(f"{option}: {spec.most_users} at scale {spec.scale} are {most} real users; at most {of}")
    _check_above(spec)
    name = options.get("name")
    explicit_scale = "" if scale_text == "auto" or not kind(target).scaled else f"s{spec.scale:g}".replace(".", "_")
    name = derived_name(spec, default_phases, explicit_scale) if name is None or name == "" else name
    if name and not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise RequestError(
            f"name: {name!r}: allowed are up to 40 of a-z, 0-9, _ and -, beginning with a letter or digit"
        )
    return replace(spec, name=name)


def _parse_above(text: Any, system: System) -> int | None:
    """Raises RequestError also for a system whose users cannot leave."""
    if not text:
        return None
    load = system.definition.load
    if load.model is not LoadModel.CLOSED:
        raise RequestError(
            f"above: users leave only where users think; the load of system {system.name} is {load.model.value}"
        )
    if not load.driver.lets_users_leave:
        raise RequestError(f"above: the driver of system {system.name} does not let users leave before the end")
    return whole("above", text, *(int(n) for n in (load.factor.range if load.factor.name == USERS else ANY_USERS)))


def _check_above(spec: Spec) -> None:
    """Raises RequestError if no load comes from above, or the driver cannot make one of them."""
    if spec.above is None:
        return
    if spec.factor != USERS:
        raise RequestError(f"above: only a sweep over users has loads below it, but the factor is {spec.factor}")
    if spec.search != "grid":
        raise RequestError(f"above: a search ({spec.search}) measures each load once; allowed is --search grid")
    if spec.phases.ramp_up_s < ABOVE_RAMP_UP_S:
        raise RequestError(
            f"above: users come and leave during the ramp-up, which is {spec.phases.ramp_up_s:g} s long; give --phases "
            f"with {ABOVE_RAMP_UP_S:g} s or more"
        )
    below = [n for n in spec.users if n < spec.above]
    if not below:
        raise RequestError(f"above: {spec.above} is not above any load; the lowest is {spec.users[0]} users")
    leavers = spec.real_users(spec.above) - spec.real_users(below[-1])
    if leavers < spec.clients:
        raise RequestError(
            f"above: {spec.above} and {below[-1]} users at scale {spec.scale} differ by "
            f"{counted(leavers, 'real user')}; at least one must leave for each of {counted(spec.clients, 'client')}"
        )


def _data_profile(given: str | None, data: Data | None) -> str:
    if data is None:
        if given:
            raise RequestError(f"data: {given!r}: the system has no data profiles")
        return "none"
    return _one_of("data", given or data.default, data.profiles)


def derived_name(spec: Spec, default_phases: str, explicit_scale: str) -> str:
    """Name made of the options that differ from the defaults, so that differing experiments never share a folder."""
    from ntier_harness.targets import NAMES

    parts = [] if spec.phases.name == default_phases else [spec.phases.name.replace(".", "_")]
    parts += [spec.target] if spec.target != NAMES[0] else []
    parts += [explicit_scale] if explicit_scale else []
    data = spec.system.definition.data
    parts += [spec.data_profile] if data and spec.data_profile != data.default else []
    if spec.factor != spec.system.definition.load.factor.name:
        parts.append(spec.factor.replace("_", "-"))
    if spec.factor != USERS and spec.users != (spec.system.definition.load.workers,):
        parts.append(f"users{spec.users[0]}")
    parts += [f"seed{spec.seed}"] if spec.seed != 1 else []
    parts += [f"clients{spec.clients}"] if spec.clients != 1 else []
    parts += [f"trace{spec.trace_every}"] if spec.trace_every else []
    variants = spec.system.definition.variants
    asked = {
        v: c
        for v, c in spec.chosen.items()
        if not variants[v].keyed and v not in spec.topology.letters and c != variants[v].default
    }
    parts += [choice.replace("_", "-") for choice in asked.values()]
    if spec.settings:
        text = json.dumps(spec.settings, sort_keys=True)
        parts.append("x" + hashlib.sha256(text.encode()).hexdigest()[:6])
    return "-".join(parts)
