"""Snapshots of rented machines with the roles installed (`ntier images`): one machine for each role is rented, the
roles are installed, it is shut down, its disk is kept, and it is given back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import click
from ntier_analysis.wording import counted

from ntier_harness import durable, installed, preflight, sweep
from ntier_harness.errors import RequestError
from ntier_harness.lab import Lab
from ntier_harness.playbooks import play
from ntier_harness.spec import Spec
from ntier_harness.targets import able, snapshots
from ntier_harness.targets.account import Snapshot
from ntier_harness.targets.snapshots import Part

SEAL = "setup/images/seal.sh"
"""Prints what is installed, and removes what belongs to one machine alone."""
SEAL_RENTED = """
rm -rf /home/*/.ssh/authorized_keys /home/*/.ansible
if command -v cloud-init >/dev/null; then cloud-init clean --logs >&2; fi # its files have this machine's host key
sync
"""


def require(lab: Lab) -> None:
    """Raises RequestError if the target keeps none, or this process may not ask for them."""
    if not lab.target.keeps_snapshots:
        raise RequestError(f"target: {lab.target.name} makes no snapshots; give --target {able('keeps_snapshots')}")
    lab.target.require_privileges()


def make(lab: Lab, spec: Spec) -> None:
    """A snapshot for each role of the topology that has none. Goes on where it stopped. Raises RequestError,
    WorkError."""
    require(lab)
    spec = one_of_each(spec)
    lab.target.images_only()
    preflight.check_target(lab, spec)
    preflight.check_programs(lab, spec)
    preflight.check_machine(lab, spec)
    with sweep.locked(lab):
        sweep.tidy(lab, lab.paths.raw)
        lab.screen.step("build")
        lab.target.prepare(spec)
        wanted = unlike(lab.target.parts(spec))
        lacking = still_lacking(lab, spec, wanted)
        if lacking or lab.target.building.exists():
            lab.target.begin_images(lacking)
            with sweep.paid_for(lab, work_of(wanted)):
                make_these(lab, spec, lacking)
        there = lab.target.own_snapshots()
        old = snapshots.outdated(wanted, there)
        lab.target.remove_snapshots(old)
        for snapshot in old:
            lab.screen.say(f"removed, since it is outdated: {snapshot.name}")
        show(lab, [s for part in wanted for s in snapshots.of(part, there)])


def one_of_each(spec: Spec) -> Spec:
    """Of a tier's nodes all are alike."""
    return replace(spec, topology=replace(spec.topology, counts=dict.fromkeys(spec.topology.counts, 1)), clients=1)


def unlike(parts: list[Part]) -> list[Part]:
    """One of each installation: two tiers may have the same."""
    return list({(part.role, part.digest): part for part in parts}.values())


def work_of(parts: list[Part]) -> str:
    """What a budget is for: these very images, also if they are made in several goes."""
    text = json.dumps(sorted((part.role, part.digest) for part in parts))
    return f"images-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def still_lacking(lab: Lab, spec: Spec, wanted: list[Part]) -> list[Part]:
    """Waits for snapshots that an interrupted run had asked for: their machines must not go before."""
    there = lab.target.own_snapshots()
    for part in wanted:
        if any(s.status == "creating" for s in snapshots.of(part, there)):
            lab.screen.step(f"snapshot of {part.role}")
            lab.target.await_snapshot(part)
    usable = lab.target.usable(wanted, spec, lab.target.own_snapshots())
    return [part for part in wanted if part not in usable]


def make_these(lab: Lab, spec: Spec, lacking: list[Part]) -> None:
    """All at once. Nothing, if only what an interrupted run rented is to be given back."""
    if not lacking:
        return
    began = lab.runner.monotonic()
    lab.screen.say(f"images: {', '.join(part.role for part in lacking)}")
    lab.screen.step("up")
    lab.target.up(spec, lab.paths.logs / "terraform.log")
    lab.forget_nodes()
    install(lab, spec)
    lab.nodes.connect()
    lab.screen.step("snapshots")
    lab.runner.parallel(lambda part: seal_and_keep(lab, part), lacking)
    lab.screen.close()
    lab.screen.say(f"images: {counted(len(lacking), 'snapshot')} in {lab.runner.monotonic() - began:.0f} s")


def install(lab: Lab, spec: Spec) -> None:
    """What `deploy` would install, and nothing that it would configure."""
    variables = {
        "ntier_system": spec.system.name,
        "ntier_roles": {tier: spec.roles(tier) for tier in spec.topology.counts},
        "ntier_install_digests": installed.of_roles(lab.paths, spec),
    }
    durable.write(lab.paths.deployment, json.dumps(variables, indent=1))
    play(lab.runner, lab.paths, ["snapshot"], lab.screen.step, roles=spec.system.folder / "roles")


def seal_and_keep(lab: Lab, part: Part) -> None:
    node = next(n for n in lab.nodes.all if n.name == part.node)
    script = (lab.paths.root / SEAL).read_text() + SEAL_RENTED
    said = lab.nodes.call(node, "sh -s", input=script, timeout=300).out
    held = said.split("---\n")[-1].split("\n") if "---\n" in said else []
    lab.target.take_snapshot(part, ", ".join(filter(None, held)))


def remove(lab: Lab) -> None:
    """All of ours."""
    require(lab)
    with sweep.locked(lab):
        there = lab.target.own_snapshots()
        lab.target.remove_snapshots(there)
    lab.screen.say(f"removed: {', '.join(s.name for s in there)}" if there else "there were no snapshots of ours")


def show(lab: Lab, there: list[Snapshot]) -> None:
    if lab.screen.as_json:
        click.echo(json.dumps([as_data(s, lab.target.owner_label) for s in there], indent=1))
    for snapshot in there:
        lab.screen.say(f"there: {snapshot.name}")
    lab.screen.say(lab.target.kept())


def as_data(snapshot: Snapshot, ours: str) -> dict[str, Any]:
    """For --json, beside what else an account holds (`leftovers`)."""
    return {
        "kind": "snapshot",
        "name": snapshot.name,
        "id": snapshot.id,
        "role": snapshot.labels.get(snapshots.ROLE, ""),
        "digest": snapshot.labels.get(snapshots.DIGEST, ""),
        "status": snapshot.status,
        "size_gb": snapshot.size_gb,
        "price_per_month": snapshot.price_per_month,
        "owner": snapshot.owner,
        "ours": snapshot.owner == ours,
    }
