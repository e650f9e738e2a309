"""`system.yaml` read and checked: each problem with its line, its key and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.system import LoadModel
from pydantic import ValidationError

from ntier_harness.errors import RequestError, unknown
from ntier_harness.files import read_yaml
from ntier_harness.systems import on_disk
from ntier_harness.systems.definition import (
    UNCOUNTED,
    By,
    Choice,
    Definition,
    Load,
    Parameter,
    Setting,
)
from ntier_harness.systems.problems import Key, Problem, among

FILE = "system.yaml"
RESERVED_TIERS = ("client", "host", "all", "ungrouped", "localhost")
OF_NODES = ("address", "cpu_cores", "index", "memory_bytes", "node_type")
"""Variables of each node (ansible/plugins/inventory/nodes.py). One value for all nodes would replace them."""
OF_ANSIBLE = ("become", "environment", "group_names", "groups", "hosts", "hostvars", "inventory_hostname", "item",
              "name", "omit", "tags", "vars")  # fmt: skip
"""Names with a meaning of their own in plays."""


def read(folder: Path, roles: Path) -> Definition:
    """The system in `folder`; `roles`: Ansible's, which systems share. Raises RequestError for the first problem."""
    definition, problems = examine(folder, roles)
    if problems or definition is None:
        raise RequestError(str(problems[0]))
    return definition


def examine(folder: Path, roles: Path, *, thorough: bool = False) -> tuple[Definition | None, list[Problem]]:
    """The definition, as far as it is one, and all that is wrong with it; `thorough`: also with the files that a
    request reads when it needs them. Raises RequestError for a file that cannot be read or is no YAML."""
    file = folder / FILE
    values, node = read_yaml(file)
    if not isinstance(values, dict):
        raise RequestError(f"{file}: expected keys with values; required are {', '.join(_required())}")
    try:
        definition = Definition.model_validate(values)
    except ValidationError as error:
        return None, [_problem(file, node, _key(e["loc"]), _said(e)) for e in error.errors()]
    problems = list(_contradictions(definition, folder, roles))
    if thorough:
        problems += on_disk.contents(definition, folder)
    return definition, [_problem(file, node, key, text) for key, text in problems]


def _required() -> list[str]:
    return [name for name, field in Definition.model_fields.items() if field.is_required()]


def _key(location: tuple[str | int, ...]) -> Key:
    """Without the names that pydantic gives to the alternatives of a union."""
    kinds = ("str", "int", "float", "bool", "By", "constrained-str", "[key]")
    return tuple(part for part in location if part not in kinds)


def _said(error: Any) -> str:
    """What is wrong, in terms of the file."""
    kind, place = error["type"], [str(p) for p in error["loc"]]
    if kind == "extra_forbidden":
        return str(unknown("key", place[-1], _siblings(error["loc"]))).removeprefix("key: ")
    if isinstance(error["input"], bool) and kind.startswith("string"):
        return "is on, off, yes or no without quotes, which YAML takes for true or false; put it in quotes"
    value = "" if kind == "missing" else f" (found {repr(error['input'])[:80]})"
    return " ".join(error["msg"].removeprefix("Value error, ").split()) + value


def _siblings(location: tuple[str | int, ...]) -> list[str]:
    """Keys that are allowed beside one that is not."""
    schema = root = Definition.model_json_schema(by_alias=True)
    for part in location[:-1]:
        schema = _resolved(schema, root)
        if "properties" in schema and part in schema["properties"]:
            schema = schema["properties"][part]
        elif isinstance(part, int):
            schema = schema.get("items", schema)
        else:
            known = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
            schema = known if isinstance(known, dict) else schema
    return list(_resolved(schema, root).get("properties", {}))


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    for option in (schema, *schema.get("anyOf", [])):
        if "$ref" in option:
            return root["$defs"][option["$ref"].rsplit("/", 1)[1]]
    return schema


def _problem(file: Path, node: Any, key: Key, text: str) -> Problem:
    return Problem(file, _line(node, key), ".".join(str(k) for k in key), text)


def _line(node: Any, key: Key) -> int:
    """Where a key stands; of one that is missing, where the nearest one above it stands."""
    line = node.start_mark.line
    for part in key:
        if isinstance(part, int):
            items = node.value if isinstance(node.value, list) else []
            if not 0 <= part < len(items) or isinstance(items[part], tuple):
                break
            node = items[part]
            line = node.start_mark.line
        else:
            pairs = [p for p in node.value if isinstance(p, tuple)] if isinstance(node.value, list) else []
            pair = next((p for p in pairs if p[0].value == part), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line, pair[1]
    return line + 1


# ---- what the parts say of each other ------------------------------------------------------------------------------


def _contradictions(d: Definition, folder: Path, roles: Path) -> Iterator[tuple[Key, str]]:
    if d.name != folder.resolve().name:
        yield ("name",), f"{d.name!r} is in the folder {folder.resolve().name}; both have the same name"
    yield from _tiers(d)
    yield from _node_types(d, roles.parent.parent)
    yield from _variants(d)
    yield from _notation(d)
    yield from _variables(d)
    yield from _settings(d)
    yield from _others(d)
    yield from on_disk.data(d, roles.parent.parent)
    yield from on_disk.images(d, roles.parent.parent)
    yield from on_disk.roles(d, folder, roles)
    yield from on_disk.files(d, folder, roles.parent.parent)


def _tiers(d: Definition) -> Iterator[tuple[Key, str]]:
    seen: set[str] = set()
    for i, tier in enumerate(d.tiers):
        if tier.name in seen:
            yield ("tiers", i, "name"), f"{tier.name} is there twice"
        seen.add(tier.name)
        if tier.name in RESERVED_TIERS:
            yield ("tiers", i, "name"), f"{tier.name} is taken; not allowed are {', '.join(RESERVED_TIERS)}"
        for other, most in (("client", 99), *((t.name, t.counts[1]) for t in d.tiers)):  # Ansible's groups are tiers
            number = tier.name.removeprefix(other)
            if number != tier.name and re.fullmatch("[1-9][0-9]?", number) and int(number) <= most:
                yield ("tiers", i, "name"), f"{tier.name} is the name of node {number} of tier {other}; use another"
        if d.deploys and "_" in tier.name:
            text = f"{tier.name}: machines are named by it, and a machine's name has no _; use letters and digits only"
            yield ("tiers", i, "name"), text
        if tier.counts[0] > tier.counts[1]:
            yield ("tiers", i, "counts"), f"{list(tier.counts)}: the first number is the smallest"
        for j, other in enumerate(tier.talks_to):
            yield from among(("tiers", i, "talks_to", j), other, d.tier_names, "tier")
        yield from _uncounted(d, i)
    if circle := _circle({t.name: [other for other in t.talks_to if other != t.name] for t in d.tiers}):
        place = d.tier_names.index(circle[0])
        yield ("tiers", place, "talks_to"), f"a cycle: {' -> '.join(circle)}; a tier asks tiers further inwards only"
    else:
        for i, tier in enumerate(d.tiers):
            for other in tier.talks_to:
                if other in d.tier_names and d.tier_names.index(other) < i:
                    text = (
                        f"{tier.name} asks {other}, which stands before it; tiers are in order from the users inwards"
                    )
                    yield ("tiers", i, "talks_to"), text


def _node_types(d: Definition, root: Path) -> Iterator[tuple[Key, str]]:
    """`root`: the checkout, which has a file of all types."""
    from ntier_harness.catalog import node_types

    known = [name for name in node_types(root) if name != "client"]
    for i, tier in enumerate(d.tiers):
        yield from among(("tiers", i, "node_type"), tier.node_type, known, "node type")
    for letter, change in d.notation.node_types.items():
        at: Key = ("notation", "node_types", letter, "node_type")
        yield from among(at, change.node_type, known, "node type")


def _uncounted(d: Definition, i: int) -> Iterator[tuple[Key, str]]:
    """A tier that TOPO does not count, and one that it counts, by their names."""
    tier = d.tiers[i]
    yield from _only(d, ("tiers", i, "only"), tier.only)
    lettered = [n for n, v in d.variants.items() if all(c.letter for c in v.choices.values())]
    for variant in tier.only:
        yield from among(("tiers", i, "only", variant), variant, lettered, "variant with letters")
    if tier.only and tier.name not in UNCOUNTED:
        text = f"{tier.name}: a tier that TOPO does not count is called {', '.join(UNCOUNTED)}"
        yield ("tiers", i, "name"), text
    if tier.name in UNCOUNTED and not tier.only:
        yield ("tiers", i, "name"), f"{tier.name} is for a tier that TOPO does not count (only: ...)"
    if tier.only and any(tier.name in form for form in d.notation.forms):
        yield ("tiers", i, "only"), "TOPO does not count it, but notation.forms does"


def _circle(edges: Mapping[str, list[str]]) -> list[str]:
    """Names along a cycle, the first one again at the end; empty if there is none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        circle = next(filter(None, (walk(other, [*path, name]) for other in edges.get(name, []))), [])
        done.add(name)
        return circle

    return next(filter(None, (walk(name, []) for name in edges)), [])


def _variants(d: Definition) -> Iterator[tuple[Key, str]]:
    letters: dict[str, str] = dict.fromkeys(d.notation.node_types, "notation.node_types")
    for name, variant in d.variants.items():
        at: Key = ("variants", name)
        yield from among((*at, "tier"), variant.tier, d.tier_names, "tier")
        if variant.default is not None:
            built = [name for name, choice in variant.choices.items() if choice.available]
            if variant.default in variant.choices and variant.default not in built:
                yield (
                    (*at, "default"),
                    f"{variant.default} cannot be deployed (available: false); allowed are {', '.join(built)}",
                )
            else:
                yield from among((*at, "default"), variant.default, built, "choice")
        elif not all(c.letter for c in variant.choices.values()):
            yield at, "give a default, or each choice its letter in TOPO"
        for choice_name, choice in variant.choices.items():
            here = (*at, "choices", choice_name)
            if choice.letter and choice.letter in letters:
                yield (*here, "letter"), f"{choice.letter} is that of {letters[choice.letter]} already"
            if choice.letter:
                letters[choice.letter] = f"{name} {choice_name}"
            for other, values in choice.with_.items():
                yield from among((*here, "with", other), other, d.variants, "variant")
                for j, value in enumerate(values):
                    if other in d.variants:
                        yield from among((*here, "with", other, j), value, d.variants[other].choices, "choice")
            for tier, ports in choice.ports.items():
                yield from among((*here, "ports", tier), tier, d.tier_names, "tier")
                listed = d.tier(tier).ports if tier in d.tier_names else ports
                for j, port in enumerate(ports):
                    yield from among((*here, "ports", tier, j), port, listed, "port")
            yield from _changes(d, here, choice)
            for setting, values in choice.settings.items():
                yield from among((*here, "settings", setting), setting, d.settings, "setting")
                allowed = d.settings[setting].choices if setting in d.settings else None
                for j, value in enumerate(values):
                    yield from among((*here, "settings", setting, j), value, allowed or [], "value")


def _changes(d: Definition, here: Key, choice: Choice) -> Iterator[tuple[Key, str]]:
    for tier, change in choice.tiers.items():
        yield from among((*here, "tiers", tier), tier, d.tier_names, "tier")
        for j, other in enumerate(change.talks_to or []):
            yield from among((*here, "tiers", tier, "talks_to", j), other, d.tier_names, "tier")
    if choice.data and choice.data.shown_by:
        yield from among((*here, "data", "shown_by"), choice.data.shown_by, d.tier_names, "tier")


def _notation(d: Definition) -> Iterator[tuple[Key, str]]:
    if not d.notation.forms or not all(d.notation.forms):
        yield ("notation", "forms"), "expected at least one list of tiers: [[web, db]]"
    lengths = [len(form) for form in d.notation.forms]
    for i, form in enumerate(d.notation.forms):
        if len(form) in lengths[:i]:
            yield ("notation", "forms", i), f"another form has {len(form)} numbers too; TOPO could mean either"
        for j, tier in enumerate(form):
            yield from among(("notation", "forms", i, j), tier, d.tier_names, "tier")
        if len(set(form)) < len(form):
            yield ("notation", "forms", i), "a tier is there twice"
    for i, tier in enumerate(d.tier_names):
        if not d.tier(tier).only and not any(tier in form for form in d.notation.forms):
            yield ("tiers", i, "name"), f"{tier} is in none of notation.forms"
    for letter, change in d.notation.node_types.items():
        yield from among(("notation", "node_types", letter, "tier"), change.tier, d.tier_names, "tier")
    from ntier_harness.systems.notation import parse

    if all(t in d.tier_names for form in d.notation.forms for t in form):
        try:
            parse(d, d.notation.example)
        except RequestError as error:
            yield ("notation", "example"), str(error)


def _variables(d: Definition) -> Iterator[tuple[Key, str]]:
    """Names that become variables of all nodes."""
    named: list[Key] = [("settings", name) for name in d.settings]
    named += [("load", "parameters", name) for name in d.load.parameters]
    for variant, what in d.variants.items():
        for choice, told in what.choices.items():
            named += [("variants", variant, "choices", choice, "variables", name) for name in told.variables]
    for key in named:
        name = str(key[-1])
        if name in (*OF_NODES, *OF_ANSIBLE) or name.startswith(("ansible_", "ntier_")):
            others = ", ".join(sorted({*OF_NODES, *OF_ANSIBLE}))
            text = f"{name} is a variable of Ntier's or Ansible's; not allowed are {others}, ansible_... and ntier_..."
            yield key, text
        elif key[0] == "variants" and name in d.settings:
            yield key, f"{name} is a setting already, and its value would win"


def _settings(d: Definition) -> Iterator[tuple[Key, str]]:
    for name, setting in d.settings.items():
        at: Key = ("settings", name)
        yield from among((*at, "tier"), setting.tier, d.tier_names, "tier")
        yield from _only(d, (*at, "only"), setting.only)
        if setting.scales != "no" and setting.choices:
            yield (*at, "scales"), "texts cannot be scaled"
        yield from _default(d, name, setting)
    for name, parameter in d.load.parameters.items():
        if problem := out_of_range(parameter, parameter.default):
            yield ("load", "parameters", name, "default"), problem


def _only(d: Definition, at: Key, only: dict[str, list[str]]) -> Iterator[tuple[Key, str]]:
    for variant, values in only.items():
        yield from among((*at, variant), variant, d.variants, "variant")
        for j, value in enumerate(values):
            if variant in d.variants:
                yield from among((*at, variant, j), value, d.variants[variant].choices, "choice")


def _default(d: Definition, name: str, setting: Setting) -> Iterator[tuple[Key, str]]:
    at: Key = ("settings", name, "default")
    default = setting.default
    if default is None:
        if not any(name in c.settings for v in d.variants.values() for c in v.choices.values()):
            yield at[:2], "has no default, and no choice of a variant allows values of it"
        return
    if isinstance(default, By):
        yield from among((*at, "by"), default.by, ["node_type", *d.variants], "variant")
        if missing := sorted(_cases(d, setting, default.by) - set(default.values)):
            yield (*at, "values"), f"none for {', '.join(missing)}"
        for key, value in default.values.items():
            if problem := out_of_range(setting, value):
                yield (*at, "values", key), problem
    elif problem := out_of_range(setting, default):
        yield at, problem


def _cases(d: Definition, setting: Setting, by: str) -> set[str]:
    """What a default that depends on `by` must have values for."""
    if by in d.variants:
        choices = d.variants[by].choices
        return {c for c in setting.only.get(by) or choices if c in choices and choices[c].available}
    if by != "node_type" or setting.tier not in d.tier_names:
        return set()
    lettered = {change.node_type for change in d.notation.node_types.values() if change.tier == setting.tier}
    return {d.tier(setting.tier).node_type} | lettered


def out_of_range(setting: Setting | Parameter, value: Any) -> str:
    """What is wrong with a value; empty if nothing is."""
    if setting.choices is not None:
        return "" if value in setting.choices else f"{value!r} is unknown; allowed are {', '.join(setting.choices)}"
    assert setting.range is not None
    low, high = setting.range
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high or (isinstance(low, int) and isinstance(high, int) and value % 1):
        return f"{value!r} is out of range; allowed are {low}..{high}"
    return ""


def _others(d: Definition) -> Iterator[tuple[Key, str]]:
    tiers = d.tier_names
    load, entry = d.load, d.load.entry.tier
    yield from among(("load", "entry", "tier"), entry, tiers, "tier")
    if entry in tiers and (form := next((f for f in d.notation.forms if entry not in f), None)):
        text = f"{entry} is in no topology {'/'.join(form)} (notation.forms); the load needs it in each"
        yield ("load", "entry", "tier"), text
    if bool(load.workloads) == bool(load.mixes):
        yield ("load",), "give either workloads: or mixes: FOLDER"
    elif load.workloads:
        yield from among(("load", "default_workload"), load.default_workload, load.workloads, "workload")
    if bool(load.phases) == bool(load.phases_file):
        yield ("load",), "give either phases: and default_phases:, or phases_file: FILE"
    elif load.phases:
        yield from among(("load", "default_phases"), load.default_phases or "", load.phases, "phases")
    if load.factor.name != "users" and load.factor.name not in load.parameters:
        yield from among(("load", "factor", "name"), load.factor.name, ["users", *load.parameters], "variable")
    elif load.factor.name != "users" and not load.parameters[load.factor.name].range:
        yield ("load", "factor", "name"), f"{load.factor.name} is not a number; a factor needs a range"
    else:
        yield from _default_values(load)
    if load.mixes and load.driver.kind == "jmeter" and load.model is not LoadModel.CLOSED:
        yield (
            ("load", "model"),
            f"{load.model.value}: users who walk a mix think; give closed, or workloads: for mixes:",
        )
    elif load.driver.kind == "jmeter" and not load.driver.own_thread_group and load.model is not LoadModel.CLOSED:
        text = (
            f"{load.model.value}: Ntier's users, which run the plan, think; give closed, or own_thread_group: true if "
            "the plan makes this load itself"
        )
        yield ("load", "model"), text
    if load.model is not LoadModel.CLOSED:
        thinking: list[Key] = [("load", "think_time_s")] if "think_time_s" in load.model_fields_set else []
        thinking += [("load", "workloads", n, "think_time_s") for n, w in load.workloads.items() if w.think_time_s]
        for key in thinking:
            yield key, f"only the users of a closed load think, and model is {load.model.value}; leave it out"
    if load.factor.scales and load.factor.name != "users":
        yield ("load", "factor", "scales"), f"only users are multiplied by the scale; the factor is {load.factor.name}"
    for name in set(load.parameters) & set(d.settings):
        yield ("load", "parameters", name), "is a setting already"
    for name, check in d.checks.own.items():
        yield from among(("checks", "own", name, "expect"), check.wanted.tier, tiers, "tier")
    for i, request in enumerate(d.verify.requests):
        yield from among(("verify", "requests", i, "tier"), request.tier, tiers, "tier")
        try:
            re.compile(request.contains)
        except re.error as error:
            text = f"{request.contains!r} is no regular expression: {error}"
            yield ("verify", "requests", i, "contains"), text
    for i, reset in enumerate(d.reset):
        yield from among(("reset", i, "tier"), reset.tier, tiers, "tier")
    if d.deploy == "roles" and not (d.verify.requests or d.verify.playbook):
        yield ("verify",), "give requests: with the answers that they get when all tiers serve, or a playbook:"


def _default_values(load: Load) -> Iterator[tuple[Key, str]]:
    """Values of the factor that a request gets if it names none."""
    from ntier_harness.request import parse_users, parse_values

    factor = load.factor
    try:
        if factor.name == "users":
            parse_users(factor.default, factor.range)
        else:
            parse_values(factor.name, factor.default, load.parameters[factor.name])
    except RequestError as error:
        yield ("load", "factor", "default"), str(error)
