"""A request: options, as texts, are read and checked once, and become a `Spec`."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.wording import counted

from ntier_harness import catalog, systems
from ntier_harness.errors import RequestError, unknown
from ntier_harness.spec import PRECISIONS, USERS, Spec, cpu_shares, keyed
from ntier_harness.systems import System, notation
from ntier_harness.systems.definition import Data, Parameter
from ntier_harness.systems.notation import Topology

MAX_REAL_USERS = 15_000  # of a client: one JVM thread per user; pids.max of a common container is 17,500
MAX_CLIENTS = 16  # as terraform/modules/topology
MAX_TRACE_EVERY = 1_000_000
MAX_POINTS = 999  # values of a factor in a sweep
NAME_MOST = 40  # characters of a sweep's own name
ANY_USERS = (1, 100_000)
ABOVE_RAMP_UP_S = 4.0  # least ramp-up of a trial from above: a second each to come, to be there, and two to come back


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
        if choice is None:
            raise RequestError(f"{name}: missing; allowed are {', '.join(there)}")
        if choice not in there:
            raise unknown(name, choice, there)
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
    return name, parse_values(name, text, load.parameters[name]), number


def parse_values(name: str, text: str, parameter: Parameter) -> tuple[float, ...]:
    """Numbers with commas, or `first:last:step` (inclusive). Sorted, without doubles."""
    try:
        parts = [float(part) for part in re.split("[:,]", text)]
    except ValueError:
        parts = []
    finite = parts and all(map(math.isfinite, parts))
    if not finite or (":" in text and (len(parts) != 3 or "," in text or parts[2] <= 0 or parts[0] > parts[1])):
        raise RequestError(f"factor {name}: {text!r}: expected first:last:step or a list (0.1,0.5,1)")
    if ":" in text:
        first, last, step = parts
        if (last - first) / step >= MAX_POINTS:
            raise RequestError(f"factor {name}: {text!r} gives more values than the {MAX_POINTS} that are allowed")
        count = int((last - first) / step + 1e-9) + 1
        parts = [round(first + i * step, 12) for i in range(count)]
    low, high = parameter.range
    for value in parts:
        if not low <= value <= high or (parameter.whole and value % 1):
            whole = "whole numbers " if parameter.whole else ""
            raise RequestError(f"factor {name}: {value:g} is out of range; allowed are {whole}{low}..{high}")
    return tuple(sorted(set(parts)))


def whole(option: str, text: Any, low: int, high: int) -> int:
    try:
        value = int(text)
    except (TypeError, ValueError):
        raise RequestError(f"{option}: {text!r} is not a whole number; allowed are {low}..{high}") from None
    if not low <= value <= high:
        raise RequestError(f"{option}: {value} is out of range; allowed are {low}..{high}")
    return value


def number(option: str, text: str, allowed: tuple[float, float], example: str = "") -> float:
    """Raises RequestError. `example`: what a value means, for the message."""
    low, high = allowed
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"{option}: {text!r} is not a number; allowed are {low}..{high}{example}") from None
    if not low <= value <= high:
        raise RequestError(f"{option}: {value:g} is out of range; allowed are {low}..{high}{example}")
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
    return number("precision", text, PRECISIONS, " (0.05 is +-5 %)")


def _parse_trace(text: Any, system: System) -> int:
    if not text:
        return 0
    if not system.definition.load.driver.traces:
        raise RequestError(f"trace: system {system.name} carries no trace context (load.driver.traces)")
    return whole("trace", text, 0, MAX_TRACE_EVERY)


def make_spec(options: dict[str, Any], root: Path, cores: int, system: System | None = None) -> Spec:
    """Options (texts as typed, None = default) -> Spec. `root`: the checkout. `system`: the one that the options name,
    if it has been read already. Raises RequestError for the first wrong one."""
    from ntier_harness import settings
    from ntier_harness.targets import NAMES, kind

    system = system or systems.find(root, options.get("system") or systems.default(root))
    load, data = system.definition.load, system.definition.data
    topology = parse_topology(options.get("topo"), system)
    target = options.get("target") or NAMES[0]
    if not kind(target).own_machines and not system.definition.deploys:
        able = ", ".join(name for name in NAMES if kind(name).own_machines and not kind(name).rents)
        raise RequestError(f"target: system {system.name} runs already (deploy: none); allowed: {able}")
    search = options.get("search") or "grid"
    if search not in catalog.SEARCHES:
        raise unknown("search", search, catalog.SEARCHES)
    factor, values, users = parse_factor(options, system)
    if search == "capacity" and load.model is not LoadModel.CLOSED:
        raise RequestError(
            f"search: capacity searches where users think; the load of system {system.name} is {load.model.value}; "
            "allowed is grid"
        )
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
        built_roles=system.built_roles,
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
    if name and not re.fullmatch(rf"[a-z0-9][a-z0-9_-]{{0,{NAME_MOST - 1}}}", name):
        raise RequestError(
            f"name: {name!r}: allowed are up to {NAME_MOST} of a-z, 0-9, _ and -, beginning with a letter or digit"
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
    name = "-".join(parts)
    rest = hashlib.sha256(name.encode()).hexdigest()[:7]
    return name if len(name) <= NAME_MOST else f"{name[: NAME_MOST - 8]}-{rest}"
