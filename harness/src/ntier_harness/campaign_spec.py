"""A campaign as values: a YAML file of topologies x mixes x middlewares x repetitions -> sweeps, and their order.

Keys and values are those of `ntier sweep`; the three that are crossed are lists with a plural name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ntier_harness import catalog, plan, systems, targets
from ntier_harness.errors import RequestError, unknown
from ntier_harness.files import at_home, parse_yaml, read_text
from ntier_harness.request import choose, make_spec, parse_topology, parse_variants, whole
from ntier_harness.scale import auto_scale
from ntier_harness.spec import Spec, cpu_shares, keyed
from ntier_harness.systems import System
from ntier_harness.systems.notation import Topology

CROSSED = {"topologies": "topo", "mixes": "mix", "middlewares": "middleware"}
SINGULAR = {"topo": "topology", "mix": "mix", "middleware": "middleware"}
OPTIONS = (
    "users",
    "above",
    "factor",
    "phases",
    "reps",
    "search",
    "precision",
    "seed",
    "data",
    "set",
    "variant",
    "clients",
    "trace",
    "target",
    "system",
)
KEYS = (*CROSSED, *OPTIONS, "hosts", "scale", "attempts", "name", "include", "exclude")
ENTRY_KEYS = (
    *SINGULAR.values(),
    "users",
    "above",
    "factor",
    "phases",
    "reps",
    "search",
    "precision",
    "data",
    "set",
    "variant",
    "clients",
    "trace",
    "name",
)
ATTEMPTS = 3


@dataclass(frozen=True)
class Campaign:
    """`sweeps` in the order of the file, all on one target; `text` is the file as given; `hosts`: inventory of target
    hosts."""

    name: str
    sweeps: tuple[Spec, ...]
    attempts: int
    text: str
    hosts: str | None = None

    @property
    def target(self) -> str:
        return self.sweeps[0].target

    @property
    def reps(self) -> int:
        return max(s.reps for s in self.sweeps)


@dataclass(frozen=True)
class Source:
    """The file's values as texts, and the line of each key and list item."""

    name: str
    values: dict[str, Any]
    lines: dict[str, int]

    def error(self, key: str, message: str, item: int | None = None) -> RequestError:
        line = self.lines.get(f"{key}.{item}") or self.lines.get(key)
        return RequestError(f"{self.name}{f', line {line}' if line else ''}: {message}")

    def list(self, key: str, default: list[str]) -> list[Any]:
        value = self.values.get(key, default)
        if not isinstance(value, list) or not value:
            raise self.error(key, f"{key}: {value!r}: expected a list, for example [{', '.join(map(str, default))}]")
        return value


def read(file: str | Path) -> str:
    try:
        return read_text(Path(file))
    except RequestError as error:
        raise RequestError(f"spec: {error}") from None


def parse(text: str, file: str, root: Path, cores: int) -> Campaign:
    """Raises RequestError with file, line, key and what is allowed."""
    source = _source(text, file)
    for key in source.values:
        if key not in KEYS:
            raise source.error(key, str(unknown("key", key, KEYS)))
        _has_value(source, key, source.values[key])
    name = source.values.get("name") or Path(file).stem
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise source.error("name", f"name: {name!r}: allowed are up to 40 of a-z, 0-9, _ and -")
    system = _system(source, root)
    entries = _entries(source, system)
    scales = _scales(source, system, entries, cores, catalog.node_types(root))
    sweeps = []
    for (options, key, item), scale in zip(entries, scales, strict=True):
        try:
            spec = make_spec(options | {"scale": scale}, root, cores, system)
        except RequestError as error:
            raise _located(source, error, key, item) from None
        if any(s.sweep == spec.sweep for s in sweeps):
            raise source.error(key, f"{spec.sweep} is asked for twice", item)
        sweeps.append(spec)
    try:
        attempts = whole("attempts", source.values.get("attempts") or ATTEMPTS, 1, plan.ATTEMPTS_MOST)
    except RequestError as error:
        raise source.error("attempts", str(error)) from None
    return Campaign(name, tuple(sweeps), attempts, text, _hosts(source, sweeps[0].target))


def _has_value(source: Source, key: str, value: Any, item: int | None = None, name: str = "") -> None:
    """Raises RequestError for an empty value, which would be taken for none; no settings are settings, too."""
    name = name or key
    if value in ("", [], {}) and name not in ("set", "variant"):
        raise source.error(key, f"{name}: has no value; give one, or leave {name} out for what is usual", item)


def _system(source: Source, root: Path) -> System:
    given = _text(source, "system", source.values["system"]) if "system" in source.values else systems.default(root)
    try:
        return systems.find(root, given)
    except RequestError as error:
        raise source.error("system", str(error)) from None


def _hosts(source: Source, target: str) -> str | None:
    """The inventory file, relative to the campaign's. Whether it can be used is seen where it is read."""
    needed = targets.kind(target).needs_inventory
    if "hosts" in source.values and not needed:
        able = " or ".join(n for n in targets.NAMES if targets.kind(n).needs_inventory)
        raise source.error("hosts", f"hosts: of no use to target {target}; give target: {able}")
    if not needed:
        return None
    if "hosts" not in source.values:
        raise source.error("target", f"target: {target} needs the machines' inventory too; give hosts: FILE.yaml")
    given = _text(source, "hosts", source.values["hosts"])
    try:
        return str(Path(source.name).parent / at_home("hosts", given))
    except RequestError as error:
        raise source.error("hosts", str(error)) from None


def _source(text: str, file: str) -> Source:
    """All scalars stay texts, as options are: 1:30 is no number of minutes here."""
    import yaml

    values, node = parse_yaml(text, file, texts=True)
    if not isinstance(values, dict):
        raise RequestError(f"{file}: expected keys with values; allowed keys are {', '.join(KEYS)}")
    lines: dict[str, int] = {}
    for key, value in node.value:
        lines[key.value] = key.start_mark.line + 1
        for i, item in enumerate(value.value if isinstance(value, yaml.SequenceNode) else ()):
            lines[f"{key.value}.{i}"] = item.start_mark.line + 1
    return Source(file, values, lines)


def _located(source: Source, error: RequestError, key: str, item: int | None) -> RequestError:
    """An option's error with the line where the file says it."""
    option = str(error).partition(":")[0].split()[0]
    plural = {v: k for k, v in CROSSED.items()}
    if key != "include" and plural.get(option, option) in source.values:
        key = plural.get(option, option)
        at = source.values[key]
        item = next((i for i, v in enumerate(at) if f"{v!r}" in str(error)), item) if isinstance(at, list) else None
        return source.error(key, f"{key}{str(error).removeprefix(option)}", item)
    return source.error(key, str(error), item)


# ---- which sweeps --------------------------------------------------------------------------------------------------


def _entries(source: Source, system: System) -> list[tuple[dict[str, Any], str, int | None]]:
    """Options of each sweep, and where the file asks for it."""
    common = {k: _text(source, k, source.values[k]) for k in OPTIONS if k in source.values}
    entries: list[tuple[dict[str, Any], str, int | None]] = []
    name = keyed(system)
    if "middlewares" in source.values and not name:
        raise source.error("middlewares", f"middlewares: system {system.name} has none")
    for key in ("mixes", "middlewares", "exclude"):
        if key in source.values and "topologies" not in source.values:
            raise source.error(
                key, f"{key}: there are no topologies: to combine with; say it in the entries of include:"
            )
    if "topologies" in source.values:
        axes = [source.list("topologies", []), source.list("mixes", [system.definition.load.default_workload])]
        axes.append(source.list("middlewares", []) if "middlewares" in source.values else [None])
        drop = [_entry(source, "exclude", i) for i in range(len(source.values.get("exclude", [])))]
        used = [False] * len(drop)
        for (i, topo), mix, middleware in itertools.product(enumerate(axes[0]), axes[1], axes[2]):
            options = {"topo": str(topo), "mix": str(mix)} | ({"middleware": str(middleware)} if middleware else {})
            there = options | ({"middleware": _chosen(source, system, common | options, i)} if drop and name else {})
            matching = [n for n, d in enumerate(drop) if all(there.get(k) == v for k, v in d.items())]
            for n in matching:
                used[n] = True
            if not matching:
                entries.append((common | options, "topologies", i))
        if False in used:
            raise source.error("exclude", "exclude: matches no sweep", used.index(False))
    for i in range(len(source.values.get("include", []))):
        entries.append((common | _entry(source, "include", i), "include", i))
    if not entries:
        raise RequestError(f"{source.name}: no sweep; give topologies: [1/1/1/1M, ...] or include:")
    return entries


def _chosen(source: Source, system: System, options: dict[str, Any], i: int) -> str:
    """Middleware that a sweep has, whether or not the file names one."""
    try:
        given = parse_variants(options, system)
        return choose(system, parse_topology(options["topo"], system), given)[keyed(system) or ""]
    except RequestError as error:
        raise _located(source, error, "topologies", i) from None


def _entry(source: Source, key: str, i: int) -> dict[str, Any]:
    """One item of `include` or `exclude` as options."""
    entries = source.values[key]
    allowed = ENTRY_KEYS if key == "include" else tuple(SINGULAR.values())
    if not isinstance(entries, list) or not isinstance(entries[i], dict) or not entries[i]:
        raise source.error(key, f"{key}: expected a list of entries like {{topology: 1/1/1/1M}}", i)
    options = {v: k for k, v in SINGULAR.items()}
    for name in entries[i]:
        if name not in allowed and name in KEYS:
            raise source.error(key, f"{key}: {name} is the same for the whole campaign; give it beside {key}:", i)
        if name not in allowed:
            raise source.error(key, str(unknown(key, name, allowed)), i)
        _has_value(source, key, entries[i][name], i, name)
    return {options.get(k, k): _text(source, key, v, i, k) for k, v in entries[i].items()}


def _text(source: Source, key: str, value: Any, item: int | None = None, name: str = "") -> Any:
    """A value as the option's text: lists of users with commas, settings as name=value."""
    name = name or key
    if name in ("set", "variant") and isinstance(value, dict):
        return [f"{k}={v}" for k, v in value.items()]
    if name in ("set", "variant", "users") and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ",".join(value) if name == "users" else value
    if name in ("set", "variant") or not isinstance(value, str):
        raise source.error(
            key, f"{name}: {value!r}: expected {'a map or a list' if name in ('set', 'variant') else 'a text'}", item
        )
    return value


def _scales(
    source: Source,
    system: System,
    entries: list[tuple[dict[str, Any], str, int | None]],
    cores: int,
    node_types: dict[str, Any],
) -> list[str]:
    """One scale for all, so that their throughputs can be compared: under `auto` the smallest that any topology needs.
    A sweep that would have this scale by itself keeps its plain name, and so the trials that it already has."""
    given = str(source.values.get("scale") or "auto")
    try:
        scaled = targets.kind(str(source.values.get("target") or targets.NAMES[0])).scaled
    except RequestError as error:
        raise source.error("target", str(error)) from None
    if not scaled:
        return [given] * len(entries)
    alone = []
    for options, key, item in entries:
        try:
            alone.append(auto_scale(cores, cpu_shares(system, parse_topology(options.get("topo"), system), node_types)))
        except RequestError as error:
            if not str(error).startswith("scale"):
                raise _located(source, error, key, item) from None
            if given == "auto":
                raise source.error(key, f"{key}: {options['topo']}: {error}", item) from None
            alone.append(0.0)
    if given != "auto":
        return [given] * len(entries)
    common = min(alone)
    return ["auto" if scale == common else f"{common:g}" for scale in alone]


# ---- order and cost ------------------------------------------------------------------------------------------------


def new_nodes(before: Topology | None, after: Topology) -> int:
    """Number of nodes to make when the topology changes; a node of another kind is made anew."""
    if before is None:
        return after.node_count
    kept = {t: n for t, n in before.counts.items() if before.kinds.get(t) == after.kinds.get(t)}
    return sum(max(0, n - kept.get(tier, 0)) for tier, n in after.counts.items())


def switch_s(before: Spec | None, after: Spec, rounds: float | None = None, *, up: bool = False) -> float:
    """Expected seconds from the end of one sweep to the first trial of the next one. `rounds`: of its warm-up; `up`:
    its nodes are, so that nothing is installed."""
    warm_up = plan.warm_up_s(after, rounds)
    up = up or (before is not None and not new_nodes(before.topology, after.topology))
    redeploy = plan.deploy_s(after, up=up) + warm_up
    if before is None:
        return redeploy
    if _deployed(before) != _deployed(after):
        return redeploy + plan.NODE_S * new_nodes(before.topology, after.topology)
    if before.restores or after.restores:
        return redeploy  # the data are restored; the policy of writes may change too
    more = plan.warm_rounds(after)[1] > plan.warm_rounds(before)[1]
    return warm_up if before.mix != after.mix or more else 0.0


def _deployed(spec: Spec) -> tuple[Any, ...]:
    """What a deployment is made for, besides the workload."""
    return spec.topology, spec.chosen, spec.settings, spec.data_profile, spec.clients, spec.trace_every


def blocks(campaign: Campaign) -> Iterator[list[Spec]]:
    """Complete blocks: all sweeps with repetition 1, then with 2, and so on; each sweep as far as it goes by then.

    In the first block the smallest topology comes first, then the middle one, the quarters...: a map that gets finer. A
    switch costs a deployment whatever the topologies, and a second per new node. Later blocks follow a path on which
    neighbours share nodes. Every other block goes backwards, and so do the sweeps of one topology (A B, B A, A B): then
    neither size nor the compared variant grows steadily with time."""
    for rep in range(1, campaign.reps + 1):
        groups: dict[Topology, list[Spec]] = {}
        for spec in campaign.sweeps:
            if spec.reps >= rep:
                groups.setdefault(spec.topology, []).append(replace(spec, reps=rep))
        ordered = _by_size(groups)
        if rep == 1:
            ordered = [ordered[i] for i in plan.block_order(len(ordered), 0)]
        else:
            ordered = _path(ordered)[:: 1 if rep % 2 else -1]
        yield [s for t in ordered for s in sorted(groups[t], key=_alike)[:: 1 if rep % 2 else -1]]


def _alike(spec: Spec) -> tuple[Any, ...]:
    return sorted(spec.settings), spec.middleware, spec.mix.writes, spec.mix.name


def _by_size(groups: dict[Topology, list[Spec]]) -> list[Topology]:
    return sorted(groups, key=lambda t: (sorted(t.kinds.items()), t.node_count, str(t)))


def _path(topologies: list[Topology]) -> list[Topology]:
    """Each is followed by the one that needs the fewest new nodes (and then the fewest nodes)."""
    left, path = list(topologies[1:]), list(topologies[:1])
    while left:
        nearest = min(left, key=lambda t: (new_nodes(path[-1], t), new_nodes(t, path[-1]), str(t)))
        left.remove(nearest)
        path.append(nearest)
    return path
