"""The parts of a sweep as commands of their own: up, deploy, down, status, shell."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

import click
from ntier_analysis.contracts.files import read_json
from ntier_analysis.wording import counted

from ntier_harness import campaign_ledger, durable, images, ledger, preflight, settings, sweep
from ntier_harness.deploy import deploy, playbook
from ntier_harness.errors import RequestError, WorkError, unknown
from ntier_harness.lab import Lab
from ntier_harness.node_state import in_force
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.targets import able
from ntier_harness.targets.rental import money


def up(lab: Lab, spec: Spec, options: dict[str, Any]) -> None:
    """Provisions the nodes of the topology and notes the options, so that `ntier deploy` needs none."""
    ready_to_provision(lab, spec)
    lab.target.require_answer()
    with sweep.locked(lab):
        sweep.tidy(lab, lab.paths.raw)
        began = lab.runner.monotonic()
        try:
            lab.target.up(spec, lab.paths.logs / "terraform.log")
            lab.forget_nodes()
            sweep.note(lab, options)
            for said in lab.target.remarks():
                lab.screen.warn(said)
        finally:  # also of machines that an interruption left
            if said := lab.target.still_rented():
                lab.screen.warn(said)
        nodes = [n.model_dump() for n in lab.nodes.all]
        lab.screen.close()
    if lab.screen.as_json:
        click.echo(json.dumps(nodes))
    lab.screen.say(
        f"{counted(len(nodes), 'node')} up ({lab.runner.monotonic() - began:.0f} s): "
        f"{', '.join(n['name'] for n in nodes)}"
    )


def ready_to_provision(lab: Lab, spec: Spec) -> None:
    """Raises RequestError if `up` would."""
    preflight.check_target(lab, spec)
    preflight.check_programs(lab, spec)
    lab.target.require_privileges()
    preflight.check_machine(lab, spec)


def ready_to_deploy(lab: Lab, spec: Spec) -> None:
    """Raises RequestError if other nodes are up than the request needs, WorkError if there are none."""
    preflight.check_target(lab, spec)
    preflight.check_programs(lab, spec)
    lab.target.require_privileges()
    wanted = {**spec.topology.counts, CLIENT: spec.clients}
    there = {tier: len(lab.nodes.tier(tier)) for tier in wanted}
    if there != wanted:
        raise RequestError(f"topo: {spec.topology} is not what is up ({there}); run: ntier up --topo {spec.topology}")


def deploy_only(lab: Lab, spec: Spec, *, check: bool) -> None:
    """Deploys onto the nodes that are up."""
    with sweep.locked(lab):
        ready_to_deploy(lab, spec)
        if check and not spec.system.definition.deploys:
            raise RequestError(f"check: nothing is deployed of system {spec.system.name} (deploy: none)")
        lab.target.stay()
        if check:
            playbook(lab, spec, "deploy", check=True)
            return
        ran = deploy(lab, spec, settings.values(spec))
        lab.nodes.disconnect()
        lab.screen.close()
    lab.screen.say("deployed and verified" if ran else "this deployment is in force and healthy; nothing to do")


def noted(lab: Lab) -> dict[str, Any]:
    """Options of the last `ntier up` or sweep on this target, which `deploy` takes when it is given none."""
    try:
        return read_json(lab.paths.noted)
    except (OSError, ValueError):
        return {}


def down(lab: Lab) -> None:
    lab.target.require_privileges()
    if lab.paths.nodes.exists():
        lab.target.require_answer()
    with sweep.locked(lab):
        sweep.tidy(lab, lab.paths.raw)
        if lab.paths.nodes.exists():
            with contextlib.suppress(WorkError):
                lab.nodes.disconnect()
        removed = sorted(lab.target.instances())
        lab.screen.step("down")
        lab.target.down(lab.paths.logs / "terraform.log")
        durable.remove(lab.paths.noted)
        there = {} if lab.target.rents or lab.target.own_machines else lab.target.instances()
        lab.screen.close()
    stay = [name for name in removed if name in there]
    removed = [name for name in removed if name not in there]
    done = "given back, and nothing is left:" if lab.target.rents else "freed" if lab.target.own_machines else "removed"
    lab.screen.say(f"{done} {', '.join(removed)}" if removed else "no nodes were up")
    if stay:
        lab.screen.say(f"of another NTIER_STATE, and so they stay: {', '.join(stay)}")
    if said := lab.target.kept():
        lab.screen.say(said)


def leftovers(lab: Lab, *, remove: bool, owner: str | None, as_json: bool) -> int:
    """What the account holds with a label of this project. `remove`: what is nobody's any more, that is our own that no
    deployment uses, and whatever is past its time and has no machine of its owner running; with `owner` also all of
    that owner's, snapshots included. Those are listed apart, since they are kept on purpose. Returns 0 if nothing of
    that is left, else 1."""
    if not lab.target.rents:
        raise RequestError(f"target: {lab.target.name} rents no machines; give --target {able('rents')}")
    lab.target.require_privileges()
    with sweep.locked(lab):
        things = lab.target.leftovers()
        stray = [f for f in things if f["owner"] == owner or (not f["in_use"] and (f["ours"] or is_abandoned(f)))]
        if remove and stray:
            lab.target.remove_leftovers(stray)
        kept = lab.target.all_snapshots()
        if remove and (theirs := [s for s in kept if s.owner == owner]):
            lab.target.remove_snapshots(theirs)
            kept = [s for s in kept if s not in theirs]
    kept_data = [images.as_data(s, lab.target.owner_label) for s in kept]
    if as_json:
        click.echo(json.dumps(things + kept_data, indent=1))
    for f in [] if as_json else things:
        whose = "ours" if f["ours"] else f"of {f['owner']}"
        state = "in use" if f["in_use"] else "not ours" if f not in stray else "removed" if remove else "left over"
        late = ", past its time" if f["expired"] else ""
        late += ", but its owner's machines run" if f["expired"] and f["running"] and f not in stray else ""
        click.echo(f"{f['kind']:<8} {f['name']:<40} {f['detail']:<16} {whose}, {state}{late}; for {f['work'] or '-'}")
    for s in [] if as_json else kept_data:
        click.echo(snapshot_line(s, lab.target.offer.currency))
    if not as_json and not things and not kept:
        click.echo("the account holds nothing with a label of this project")
    return int(bool(stray) and not remove)


def is_abandoned(found: dict[str, Any]) -> bool:
    return found["expired"] and not found["running"]


def snapshot_line(s: dict[str, Any], currency: str) -> str:
    """A snapshot beside what else an account holds."""
    size = "size unknown" if s["size_gb"] is None else f"{s['size_gb']:g} GB"
    price = "price unknown" if s["price_per_month"] is None else f"{money(s['price_per_month'], currency)} per month"
    whose = "ours" if s["ours"] else f"of {s['owner']}"
    state = "kept" if s["status"] == "available" else s["status"]
    return f"snapshot {s['name']:<40} {size:<16} {whose}, {state}: {price}"


def status(lab: Lab, *, as_json: bool) -> None:
    """Nodes, what is deployed on them, who is at work, and of every sweep the state and what its report says."""
    try:
        nodes = [n.model_dump() for n in lab.nodes.all]
    except WorkError:
        nodes = []
    unanswered = None
    try:
        instances = lab.target.instances()
    except WorkError as error:
        instances, unanswered = {}, str(error)
    sweeps = {}
    raw = lab.paths.raw
    for directory in sorted(p for p in raw.iterdir() if p.is_dir()) if raw.is_dir() else []:
        campaign = ledger.attempts(directory)
        outcomes = [max(list_, key=lambda a: (a.outcome == "valid", a.number)).outcome for list_ in campaign.values()]
        sweeps[directory.name] = {o: outcomes.count(o) for o in dict.fromkeys(outcomes)}
    verdicts = {name: said for name in sweeps if (said := sweep.reported(lab, name).get("sentence"))}
    data = {
        "nodes": nodes,
        "instances": instances,
        "unanswered": unanswered,
        "rented": lab.target.still_rented() or None,
        "deployed": in_force(lab),
        "at_work": at_work(lab),
        "sweeps": sweeps,
        "verdicts": verdicts,
        "campaigns": campaign_ledger.stored(lab, os.cpu_count() or 1),
    }
    if as_json:
        click.echo(json.dumps(data, indent=1))
        return
    for node in nodes:
        there = "unknown" if unanswered else instances.get(node["name"], "missing")
        whole = counted(node["cores"], "core") if node["cores"] else "no CPU limit"
        cores = counted(node["cpu_cores"], "core") if node["cpu_cores"] else whole
        click.echo(f"{node['name']:<14} {node['address']:<15} {there:<9} {cores}")
    if not nodes:
        click.echo("no nodes are up")
    if nodes and unanswered:
        click.echo(f"whether they are there is not known: {unanswered}")
    if data["rented"]:
        click.echo(data["rented"])
    click.echo(
        "deployed: "
        + ("yes" if data["deployed"].get("digest") else "no")
        + (", warm" if data["deployed"].get("warm") else "")
    )
    click.echo(f"at work: {data['at_work'] or 'nobody'}")
    for name, counts in sweeps.items():
        click.echo(f"sweep {name}: {', '.join(f'{n} {o}' for o, n in counts.items()) or 'no trials'}")
        if name in verdicts:
            click.echo(f"  {verdicts[name]}")
    for campaign in data["campaigns"]:
        click.echo(campaign_ledger.text(campaign))


def at_work(lab: Lab) -> str | None:
    """Who holds the lock, or None."""
    from filelock import FileLock, Timeout

    if not os.path.exists(lab.paths.lock):
        return None
    try:
        with FileLock(lab.paths.lock, timeout=0):
            return None
    except Timeout:
        return sweep.holder(lab)
    except PermissionError:
        return None


def shell(lab: Lab, name: str, command: list[str]) -> None:
    """Becomes an SSH session on the node."""
    import shlex

    nodes = {n.name: n for n in lab.nodes.all}
    if name not in nodes:
        raise unknown("node", name, nodes)
    access = lab.nodes.access(nodes[name])
    argv = lab.nodes.argv(nodes[name], shlex.join(command), shared=False)
    if not command:
        argv = [*argv[:-1], *(["sudo -i"] if access.user != "root" else [])]
    os.execvp(  # noqa: S606 (becoming ssh is the purpose)
        argv[0], [argv[0], *(["-t"] if not command or command[-1] == "-f" else []), *argv[1:]]
    )
