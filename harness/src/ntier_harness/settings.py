"""Soft resources (threads, pools, policies): what the system says of them, scaled with the nodes, and what `--set`
changes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ntier_harness.errors import RequestError, unknown
from ntier_harness.systems import System
from ntier_harness.systems.definition import By, Parameter, Setting
from ntier_harness.systems.reading import out_of_range
from ntier_harness.systems.rules import Request

if TYPE_CHECKING:
    from ntier_harness.spec import Spec

TRACE_STATEMENT_MS = 10
"""With tracing the databases log statements from so long on: nine of them, a page's, leave at most 90 ms untold."""
GIVEN, RULE = "given", "follows from others"


def parse(system: System, pairs: Iterable[str]) -> dict[str, Any]:
    """`name=value` texts -> typed settings. Raises RequestError naming what is allowed."""
    settings: dict[str, Any] = {}
    known: dict[str, Setting | Parameter] = {**system.definition.settings, **system.definition.load.parameters}
    for pair in pairs:
        name, sep, text = pair.partition("=")
        if not sep:
            raise RequestError(f"set: {pair!r}: expected name=value, for example {_example(system)}")
        if name not in known:
            raise unknown("set", name, known)
        settings[name] = _value(name, text, known[name])
    return settings


def _example(system: System) -> str:
    name = next((n for n, s in system.definition.settings.items() if s.range), None)
    return f"{name}={system.definition.settings[name].range[0]}" if name else "workers=60"


def _value(name: str, text: str, setting: Setting | Parameter) -> Any:
    if setting.choices is not None:
        if text not in setting.choices:
            raise unknown(f"set {name}", text, setting.choices)
        return text
    try:
        value = int(text) if setting.whole else float(text)
    except ValueError:
        value = None
    if value is None or (setting.whole and not re.fullmatch("-?[0-9]+", text)) or out_of_range(setting, value):
        low, high = setting.range
        raise RequestError(f"set {name}: {text!r} is out of range; allowed are {low}..{high}")
    return value


def scaled(total: float, scale: float, nodes: int, least: int) -> int:
    """A tier's total, at this scale, for one of `nodes` nodes; rounded up: no tier gets less than its share."""
    return max(least, math.ceil(total * scale / nodes - 1e-9))


def values(spec: Spec) -> dict[str, Any]:
    """All variables of the deployment: the request's own (`ntier_...`), what follows from the variants, settings."""
    system = spec.system.definition
    common: dict[str, Any] = {"ntier_scale": spec.scale}
    common |= {f"ntier_{variant}": choice for variant, choice in spec.chosen.items()}
    common |= {"ntier_data_profile": spec.data_profile} if system.data else {}
    if spec.trace_every:
        common |= {"ntier_trace_every": spec.trace_every, "ntier_trace_statement_ms": TRACE_STATEMENT_MS}
    for variant, choice in spec.chosen.items():
        common |= system.variants[variant].choices[choice].variables
    usual = {name: default(spec, name) for name, s in system.settings.items() if _exists(spec, s)}
    rules = spec.system.rules.defaults(request(spec, usual | spec.settings, max(spec.values, default=None)))
    parameters = {name: value for name, value in spec.parameters().items() if name != spec.factor}
    return common | parameters | usual | rules | spec.settings


def origins(spec: Spec) -> list[dict[str, Any]]:
    """Each setting with value, unit, default and where its value comes from: `given`, `follows from others`, or the
    default's source."""
    rows, settings = [], spec.system.definition.settings
    for name, value in values(spec).items():
        if name in settings:
            setting, usual = settings[name], default(spec, name)
            origin = GIVEN if name in spec.settings else RULE if value != usual else setting.source
            scales = setting.scales != "no"
            rows.append({"name": name, "value": value, "unit": setting.unit, "default": usual, "scaled": scales,
                          "origin": origin, "title": setting.title, "tier": setting.tier})  # fmt: skip
    return rows


def default(spec: Spec, name: str) -> Any:
    """A setting's default for this request."""
    setting = spec.system.definition.settings[name]
    allowed = _allowed(spec, name)
    value: Any = setting.default
    if isinstance(value, By):
        key = spec.node_type(setting.tier) if value.by == "node_type" else spec.chosen[value.by]
        value = value.values[key]
    if value is None or (allowed and value not in allowed):
        value = allowed[0]
    if setting.scales == "no":
        return value
    nodes = spec.topology.counts.get(setting.tier, 1) if setting.scales == "tier" else 1
    return scaled(value, spec.scale, nodes, setting.least)


def _exists(spec: Spec, setting: Setting) -> bool:
    there = setting.tier in spec.topology.counts
    return there and all(spec.chosen[variant] in choices for variant, choices in setting.only.items())


def _place(setting: Setting) -> str:
    """`dbms mysql_cluster`; the tier of a setting that is not bound to a choice."""
    bound = [f"{variant} {' or '.join(choices)}" for variant, choices in setting.only.items()]
    return " and ".join(bound) or f"tier {setting.tier}"


def _allowed(spec: Spec, name: str) -> list[str]:
    """Values that the chosen variants allow, the default first; empty if they do not restrict it."""
    variants = spec.system.definition.variants
    lists = [variants[v].choices[c].settings.get(name, []) for v, c in spec.chosen.items()]
    return next(filter(None, lists), [])


def request(spec: Spec, known: dict[str, Any], value: float | None = None) -> Request:
    """The request as the system's rules see it; `value`: of the factor, if that is a parameter."""
    variants = spec.system.definition.variants
    factor = {} if value is None else {spec.factor: int(value) if value % 1 == 0 else value}

    def allowed(name: str) -> dict[str, list[str]]:
        return {
            choice: what.settings[name]
            for variant in variants.values()
            for choice, what in variant.choices.items()
            if name in what.settings and all(spec.chosen[other] in fits for other, fits in what.with_.items())
        }

    return Request(
        counts=spec.topology.counts,
        chosen=spec.chosen,
        letters={v: letter for v, c in spec.chosen.items() if (letter := variants[v].choices[c].letter)},
        traits={v: variants[v].choices[c].traits for v, c in spec.chosen.items()},
        workload=spec.mix.name,
        writes=spec.mix.writes,
        given=spec.settings | factor,
        values=known,
        data_profile=spec.data_profile,
        workers=spec.real_users(spec.most_users),
        memory_bytes={tier: spec.memory_bytes(tier) for tier in spec.topology.counts},
        allowed=allowed,
    )


def check(spec: Spec) -> None:
    """Raises RequestError if the chosen variants lack what the settings ask for, or if a rule of the system forbids
    the request."""
    variants = spec.system.definition.variants
    for name, value in spec.settings.items():
        setting = spec.system.definition.settings.get(name)
        if setting is not None and not _exists(spec, setting):
            raise RequestError(f"set {name}: it would change nothing here; it is for {_place(setting)}")
        for variant, choice in spec.chosen.items():
            what = variants[variant].choices[choice]
            allowed = what.settings.get(name)
            if allowed and value not in allowed:
                hint = what.hints.get(name, {}).get(str(value))
                more = f"; {hint}" if hint else ""
                raise RequestError(f"set {name}: {choice} has no {value!r}; allowed are {', '.join(allowed)}{more}")
    try:
        for value in spec.values or (None,):
            spec.system.rules.check(request(spec, values(spec), value))
    except ValueError as error:
        raise RequestError(str(error)) from None
