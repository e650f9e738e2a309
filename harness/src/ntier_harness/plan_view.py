"""The plan of a sweep, as data and as text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ntier_analysis.wording import counted

from ntier_harness import existing, foresight, plan, preflight, schedule, settings, sweep
from ntier_harness.deploy import playbooks
from ntier_harness.errors import RequestError
from ntier_harness.lab import Lab
from ntier_harness.machine import memory_info
from ntier_harness.plan import Trial
from ntier_harness.screen import duration, size
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.systems.notation import Topology

SHOWN = 4  # nodes of a tier drawn one by one; more are counted


def picture(topology: Topology, clients: int = 1) -> str:
    """The topology as text: one column per tier, one row per node."""
    columns = []
    counted_ones = {tier: count for tier, count in topology.counts.items() if tier not in topology.beside}
    for tier, count in {CLIENT: clients, **counted_ones}.items():
        names = [f"{tier}{i}" for i in range(1, count + 1)]
        columns.append(names if count <= SHOWN else [*names[: SHOWN - 1], f"... {tier}{count}"])
    height = max(len(c) for c in columns)
    lines = []
    for row in range(height):
        cells = []
        for i, column in enumerate(columns):
            cell = column[row] if row < len(column) else ""
            width = max(len(n) for n in column)
            arrow = ("" if i == 0 else " --> ") if row == 0 else " " * (0 if i == 0 else 5)
            cells.append(arrow + (f"[{cell:^{width}}]" if cell else " " * (width + 2)))
        lines.append("".join(cells).rstrip())
    beside = [f"[{tier}{i}]" for tier in topology.beside for i in range(1, topology.counts[tier] + 1)]
    return "\n".join([*lines, *([f"beside them {' '.join(beside)}"] if beside else [])])


def plan_data(lab: Lab, spec: Spec, attempts: int = sweep.ATTEMPTS) -> dict[str, Any]:
    """Everything `ntier plan` says of a request that the preflight accepts. Reads the ledger; touches nothing."""
    trials = schedule.make(lab, spec, attempts).trials()
    to_come = schedule.to_come(lab, spec, attempts)
    left = {t.key for t in to_come if t in trials}
    up = os.path.exists(lab.paths.nodes)
    on_them_s = plan.sweep_duration_s(spec, len(to_come), deployed=False, up=True)
    problems = [f"{c.title}: {c.untried}" for c in spec.choices if c.untried]
    problems += preflight.missing_programs(lab.paths, spec)
    problems += lab.target.problems(spec)
    try:
        lab.target.require_privileges()
    except RequestError as error:
        problems.append(str(error))
    return {
        "sweep": spec.sweep,
        "topology": str(spec.topology),
        "picture": picture(spec.topology, spec.clients),
        "nodes": spec.topology.node_count + spec.clients,
        "clients": spec.clients,
        "mix": spec.mix.name,
        "middleware": spec.middleware,
        "target": spec.target,
        "data_profile": spec.data_profile,
        "phases": {"name": spec.phases.name, "ramp_up_s": spec.phases.ramp_up_s, "run_s": spec.phases.run_s,
                   "ramp_down_s": spec.phases.ramp_down_s},
        "scale": spec.scale,
        "scaled": spec.system.definition.load.factor.scales,
        "hosts": lab.target.assignment(spec),
        "seed": spec.seed,
        "system": spec.system.name,
        "soft_resources": settings.values(spec),
        "settings": settings.origins(spec),
        "trials": [
            {"trial": t.key, "users": t.users, "users_real": spec.real_users(t.users), "value": t.value, "rep": t.rep,
             "above": t.above, "state": "to run" if t.key in left else "done"} for t in trials
        ],
        "above": above_data(spec, trials, left),
        "search": search_data(spec),
        "duration_s": plan.sweep_duration_s(spec, len(to_come), deployed=False, up=up),
        "installs": plan.is_bare(spec, up=up),
        "ends_early": plan.ends_early(spec),
        "price": lab.target.price(spec, on_them_s) if to_come else None,
        "disk_bytes": plan.disk_bytes(spec, to_come),
        "disk_free_bytes": preflight.disk_free(lab.paths),
        **lab.target.demand(spec),
        "memory_available_bytes": memory_info().get("MemAvailable"),
        "steps": steps(lab, spec),
        "problems": problems,
    }  # fmt: skip


def above_data(spec: Spec, trials: list[Trial], left: set[str]) -> dict[str, Any] | None:
    """The trials from above, and what those to run add to the expected duration; None if none is asked for."""
    if spec.above is None:
        return None
    mine = [t for t in trials if t.above]
    to_run = sum(t.key in left for t in mine)
    return {"users": spec.above, "trials": len(mine), "duration_s": to_run * plan.trial_duration_s(spec)}


def search_data(spec: Spec) -> dict[str, Any]:
    """How the loads are chosen; for a search, how many trials that will take."""
    if spec.search == "grid":
        return {"name": "grid"}
    counts = {"usual": spec.most_loads * spec.reps, "at_most": spec.most_loads_if_few * spec.reps,
              "grid": len(spec.users) * spec.reps}  # fmt: skip
    given = spec.asked_precision is not None
    return {"name": spec.search, "precision": spec.precision, "precision_given": given,
            "by_minutes": spec.asked_loads is not None and not given, **counts}  # fmt: skip


def steps(lab: Lab, spec: Spec) -> list[str]:
    deploys, warm_up_s = spec.system.definition.deploys, spec.system.definition.warm_up_s
    compiled = ", until the JVMs have compiled" if spec.jvm_tiers else ""
    warm_up = f"warm-up: {warm_up_s:g} s of load without limits{compiled} (once per deployment)"
    return [
        f"{Path(lab.target.terraform).name} apply in {lab.target.root.relative_to(lab.paths.root)}",
        *(f"ansible-playbook {shown(lab, name)}" for name in playbooks(lab, spec)),
        *([] if deploys else [f"by SSH: {existing.HOME} on each machine, with the programs that measure and drive"]),
        *([warm_up] if warm_up_s else []),
        "per trial: reset, collectors, limits, load, collect, validate, seal",
        "ntier-analysis ingest, ntier-analysis report",
    ]


def shown(lab: Lab, playbook: str) -> str:
    """A playbook's file, relative to the checkout."""
    if not playbook.endswith(".yml"):
        return f"ansible/playbooks/{playbook}.yml"
    return str(Path(playbook).relative_to(lab.paths.root)) if playbook.startswith(str(lab.paths.root)) else playbook


def machines(data: dict[str, Any]) -> list[str]:
    """Lines on the machines that run the nodes: a part of this one, or others."""
    c, s = data["cores"], data["scale"]
    if c is None:
        return [f"{'hosts' * (i == 0):<10}{name} is {host}" for i, (name, host) in enumerate(data["hosts"].items())]
    memory, available = size(data["memory_bytes"]), size(data["memory_available_bytes"])
    users = f"N nominal users are N x {s} real ones" if data["scaled"] else "users are not scaled"
    return [
        f"scale     {s}: a normal node gets {s} of a core, {users}",
        f"cores     at most {c['needed']} of {c['host']} in use",
        f"memory    about {memory} of {available} available",
    ]


def price_lines(price: dict[str, Any] | None) -> list[str]:
    """What rented machines cost; nothing if none are rented."""
    if price is None:
        return []
    counts = ", ".join(f"{n} {name}" for name, n in price["machines"].items())
    if not price["per_hour"]:
        return [f"price     not known: {counts}; {price['note'] or price['source']}"]
    hour = f"{price['per_hour']:.2f} {price['currency']} per hour"
    lines = [
        f"price     about {price['expected']:.2f} {price['currency']}: {counted(price['hours'], 'hour')} of {counts} "
        f"({hour}), started hours count whole",
        f"          prices of {price['date']}, {price['note']}",
    ]
    if price["spent"]:
        lines.append(f"          {price['spent']:.2f} {price['currency']} were spent on this sweep before")
    if price["budget"] is not None:
        lines.append(
            f"budget    {price['budget']:g} {price['currency']}: before that the sweep ends and gives the machines back"
        )
    return lines


def setting_lines(settings_: list[dict[str, Any]]) -> list[str]:
    """Soft resources with value, default (at this scale) and where the value comes from."""
    if not settings_:
        return []
    width = max(len(s["name"]) for s in settings_)
    lines = [f"{'setting':<{width}}  {'value':>13}  {'default':>13}  {'unit':<11}  from"]
    for s in settings_:
        origin = (s["origin"] or "the system") + (", scaled" if s["scaled"] and s["value"] == s["default"] else "")
        lines.append(f"{s['name']:<{width}}  {s['value']:>13}  {s['default']:>13}  {s['unit'] or '-':<11}  {origin}")
    return lines


def plan_text(data: dict[str, Any]) -> str:
    p = data["phases"]
    trials = data["trials"]
    left = [t for t in trials if t["state"] == "to run"]
    width = max([12, *(len(t["trial"]) for t in trials)])
    lines = [
        f"sweep     {data['sweep']}",
        "",
        data["picture"],
        "",
        f"nodes     {data['nodes']} ({counted(data['clients'], 'client')} among them) on target "
        f"{data['target']}, data {data['data_profile']}",
        *machines(data),
        *price_lines(data["price"]),
        f"phases    {p['name']}: {p['ramp_up_s']:g} / {p['run_s']:g} / {p['ramp_down_s']:g} s",
        f"disk      about {size(data['disk_bytes'])} of {size(data['disk_free_bytes'])} free",
        f"seed      {data['seed']}",
        "",
        *setting_lines(data["settings"]),
        "",
        f"{'order':>5}  {'trial':<{width}} {'users':>7} {'real':>6}  state",
    ]
    lines += [
        f"{i:>5}  {t['trial']:<{width}} {t['users']:>7} {t['users_real']:>6}  {t['state']}"
        for i, t in enumerate(trials, 1)
    ]
    how = data["search"]
    text = "The order of the loads halves the gaps, so a sweep that stops early is a coarse one. Repetitions follow."
    count = f"{len(left)} of {counted(len(trials), 'trial')} to run"
    if how["name"] == "capacity":
        until = f"until the maximum is known to +-{100 * how['precision']:g} %"
        instead = f" instead of {how['grid']}" if how["grid"] > how["at_most"] else ""
        few = f", and up to {how['at_most']} while fewer than three loads lie beyond the knee"
        text = (
            f"Loads are searched {'as long as the minutes last' if how['by_minutes'] else until}: "
            f"{counted(how['usual'], 'trial')} at most{instead}{few * (how['at_most'] > how['usual'])}."
        )
        count = f"{len(trials)} chosen so far, {len(left)} of them to run"
    lines += [
        "",
        text,
        *above_lines(data["above"]),
        f"{count}; expected duration {time(data)} with "
        f"{'the installation of bare machines' if data['installs'] else 'all installed and nodes not yet up'}, without "
        "retries and long warm-ups",
        "",
        *([*foresight.lines(data["foreseen"]), ""] if "foreseen" in data else []),
        *(f"will run  {s}" for s in data["steps"]),
        *(f"warning   {p}" for p in data["problems"]),
    ]
    return "\n".join(lines)


def time(data: dict[str, Any]) -> str:
    return duration(data["duration_s"]) + " or less" * data["ends_early"]


def above_lines(above: dict[str, Any] | None) -> list[str]:
    if above is None:
        return []
    return [
        f"Each load below {above['users']} users is measured twice in turns: after a reset, and after {above['users']} "
        f"users were there during the ramp-up and left. That is {counted(above['trials'], 'trial')} more, of which "
        f"those to run take {duration(above['duration_s'])}."
    ]


def before_work(lab: Lab, spec: Spec, attempts: int) -> None:
    """The plan in a few lines, before a sweep begins."""
    data = plan_data(lab, spec, attempts)
    left = sum(t["state"] == "to run" for t in data["trials"])
    how = data["search"]
    of = counted(len(data["trials"]), "trial")
    number = f"at most {counted(how['at_most'], 'trial')}" if "at_most" in how else f"{left} of {of} to run"
    lab.screen.event(
        "plan", **{k: data[k] for k in ("sweep", "duration_s", "disk_bytes")}, trials=len(data["trials"]), left=left
    )
    lab.screen.say(data["picture"])
    if data["hosts"]:
        lab.screen.say("\n".join([*machines(data), *price_lines(data["price"])]))
    lab.screen.say(
        f"{data['sweep']}: scale {data['scale']}, phases {data['phases']['name']}, "
        f"{number}, expected {time(data)}, {size(data['disk_bytes'])} of disk"
    )
    for problem in data["problems"]:
        lab.screen.warn(problem)
