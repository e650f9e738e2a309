"""The target `hosts`: machines that exist already, named in an inventory file, reached by SSH. Nothing is created and
nothing is powered off; `down` leaves them as they were. There are no quotas: each node is a whole machine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.files import read_json
from ntier_analysis.contracts.nodes import Node, read_nodes

from ntier_harness import durable, existing, machine, tables
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths, nearest
from ntier_harness.playbooks import play
from ntier_harness.runner import Runner
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.ssh import Nodes, check_place
from ntier_harness.targets.free import Free
from ntier_harness.targets.heartbeats import Heartbeats
from ntier_harness.targets.inventory import Host, Inventory, assign, read_inventory, wanted_nodes
from ntier_harness.targets.mutual import cut_off
from ntier_harness.targets.survey import OWNER_FILE, Expected, Serving, Strangers, Survey, mistaken, survey
from ntier_harness.targets.terraform import Terraform, common_variables

if TYPE_CHECKING:
    from ntier_harness.doctor import Finding
    from ntier_harness.lab import Lab

PACKAGES = {"ssh": "openssh-client", "javac": "default-jdk-headless", "mvn": "maven"}
"""What it needs here; Java without its compiler builds nothing."""
# Ansible's folders of temporary files, of root and of whoever logs in; not if there is something in them
FORGET_ANSIBLE = """for home in /root $(getent passwd "$SUDO_USER" | cut -d: -f6); do
  rmdir $home/.ansible/tmp $home/.ansible
done 2>/dev/null; true"""
OWNER_FILES = (OWNER_FILE, existing.OWNER_FILE)
"""Of a machine on which a system is deployed, and of one where it runs already."""
WHOSE = f'echo "owner=$({existing.whose(*OWNER_FILES)})"'


class Hosts(Free):
    """`file`: the inventory; what was up with it is known without it."""

    name = "hosts"
    own_machines = True
    playbooks = ("machines", "deploy")
    needs_inventory = True
    scaled = False

    def __init__(self, runner: Runner, paths: Paths, file: Path | None) -> None:
        self.runner = runner
        self.paths = paths
        self.file = file
        self._left: list[str] = []
        self._terraform = Terraform(runner, paths)
        self.root = self._terraform.root
        self.terraform = self._terraform.program
        self._heartbeats: Heartbeats | None = None

    def require_privileges(self) -> None:
        """Only the state must be ours; becoming root happens on the hosts."""
        place = nearest(self.paths.state)
        if not os.access(place, os.W_OK):
            raise RequestError(
                f"privileges: {place} cannot be written; give a folder of yours: NTIER_STATE=~/.local/state/ntier"
            )

    def require_answer(self) -> None:
        """Nothing makes these machines; each is looked at before it becomes a node."""

    # ---- what may be asked of it --------------------------------------------------------------------------------

    @staticmethod
    def parse_scale(text: str, _cores: int, _shares: float) -> float:
        """1, since each node is a machine of its own. Raises RequestError for another one."""
        if text not in ("auto", "1", "1.0"):
            raise RequestError(f"scale: {text}: target hosts has whole machines, nothing is scaled; allowed is 1")
        return 1.0

    @staticmethod
    def images(_spec: Spec) -> tuple[str, ...]:
        """Nothing is made from an image."""
        return ()

    def check(self, spec: Spec) -> None:
        """There is a machine for each node, and what the machines get is here, or can be made here: set-up does not do
        it for them. Raises RequestError."""
        self.assignment(spec)
        for role in (role for tier in spec.topology.counts for role in spec.roles(tier)):
            if (own := spec.system.role(role)) and not (own / "made.yml").exists():
                raise RequestError(
                    f"hosts: {own / 'made.yml'} does not exist; say there what the role leaves on a machine, so that "
                    "ntier down can undo it (ansible/README.md: What is installed)"
                )
        if spec.system.definition.deploys:
            stale = self.runner.run([sys.executable, str(self._build), "--stale"], check=False)
            made = stale.code == 0 and not stale.out.strip()
        else:
            made = not existing.make_parts(self.paths, spec) or self.paths.jmeter.exists()
        for name in ("ssh",) if made else PACKAGES:
            if not self.runner.has(name) and not (name == "javac" and machine.javac()):
                raise RequestError(f"hosts: {name} is missing here; apt-get install {PACKAGES[name]}")

    def demand(self, _spec: Spec) -> dict[str, Any]:
        """Nothing of this machine."""
        return {"cores": None, "memory_bytes": None}

    def problems(self, _spec: Spec) -> list[str]:
        return []

    def doctor(self, _lab: Lab) -> list[Finding]:
        from ntier_harness.doctor import Finding

        try:
            self.require_privileges()
        except RequestError as error:
            return [Finding("privileges", "fail", str(error), "NTIER_STATE=~/.local/state/ntier")]
        return [Finding("privileges", "ok", f"{self.paths.state} can be written")]

    def inventory(self, spec: Spec) -> Inventory:
        if self.file is None:
            raise RequestError(
                "hosts: missing; give the inventory file of the machines: --hosts FILE (docs/targets.md)"
            )
        return read_inventory(self.file, (*spec.system.definition.tier_names, CLIENT))

    def assignment(self, spec: Spec) -> dict[str, str]:
        assigned = assign(self.inventory(spec), spec)
        return {
            name: h.address + f" by SSH {h.access.destination}" * (h.access.host != h.address)
            for name, h in assigned.items()
        }

    # ---- up and down --------------------------------------------------------------------------------------------

    def up(self, spec: Spec, log: Path) -> list[Node]:
        """Looks at the machines, claims them, and hands on which is which. Machines that leave the deployment or change
        their part are freed first."""
        check_place(self.paths)
        inventory = self.inventory(spec)
        hosts = assign(inventory, spec)
        deploys = spec.system.definition.deploys
        surveys = self._survey(spec, hosts)
        ours = [name for name, survey in surveys.items() if survey.owner] if deploys else []
        if wrong := mistaken(hosts, surveys) or cut_off(self.runner, self.paths, spec, hosts, ours):
            raise RequestError(*wrong)
        if deploys:  # before anything is given up, since it may fail
            self._make_parts(spec, inventory)
        elif build := existing.make_parts(self.paths, spec):
            self.runner.run(build, timeout=1800)
        self._free_those_that_leave(self._nodes(), spec, hosts)
        if not deploys:
            durable.remove(self.paths.machine)
        access = {
            name: dataclasses.asdict(host.access) | {"home": None if deploys else existing.HOME}
            for name, host in hosts.items()
        }
        durable.write(self.paths.access, json.dumps(access, indent=1))
        nodes = self._terraform.apply(self.variables(spec, hosts, surveys), log)
        durable.write(self._surveys_file, json.dumps({n: s.cores for n, s in surveys.items()}))
        free = {name for name, survey in surveys.items() if not survey.owner}
        self._claim(nodes, free, *(OWNER_FILES if deploys else reversed(OWNER_FILES)))
        return nodes

    def _claim(self, nodes: list[Node], free: set[str], file: str, other: str) -> None:
        """Raises RequestError naming the machines that became another deployment's since they were looked at. Those
        that were `free` then are given up: two who want the same machines would wait for each other's."""
        connected, command = Nodes(self.runner, self.paths, nodes), existing.claim(self.owner, file, other)
        owners = self.runner.parallel(lambda n: connected.call(n, command).out.strip(), nodes)
        taken = [n for n, owner in zip(nodes, owners, strict=True) if owner != self.owner]
        if taken:
            got = [n for n in nodes if n.name in free and n not in taken]
            with contextlib.suppress(WorkError):  # what is said next counts more
                self.runner.parallel(lambda n: connected.call(n, existing.unclaim(self.owner, file), check=False), got)
            names = ", ".join(f"{n.name} ({n.address})" for n in taken)
            raise RequestError(
                f"hosts: {names}: just taken by another deployment; try again, since it may have been refused as well, "
                "or give other machines"
            )

    def stay(self) -> None:
        """Raises RequestError naming the machines that are not this deployment's any more: their owner gave them away,
        or installed them anew, and what is there is not ours to change."""
        nodes = self._nodes()
        connected = Nodes(self.runner, self.paths, nodes)
        owners = self.runner.parallel(lambda n: owner_on(connected, n), nodes)
        lost = [
            f"{n.name} ({n.address}) belongs to {owner or 'nobody'}"
            for n, owner in zip(nodes, owners, strict=True)
            if owner != self.owner
        ]
        if lost:
            raise RequestError(f"hosts: {', '.join(lost)}, not to this deployment ({self.owner}); run: ntier up")

    def variables(self, spec: Spec, hosts: dict[str, Host], surveys: dict[str, Survey]) -> dict[str, Any]:
        """Input of the Terraform root."""
        machines = {
            n: {"address": h.address, "cores": surveys[n].cores, "memory_bytes": surveys[n].memory_bytes}
            for n, h in hosts.items()
        }
        values = common_variables(spec) | {"hosts": machines}
        for tier in values["tiers"]:  # nothing is cloned; which data there are is known by this name
            tier["image"] = spec.data_folder if tier["name"] == spec.data_tier else None
        return values

    def down(self, log: Path) -> None:
        """The hosts as they were before `up`, by the record that each keeps of what was made there."""
        if nodes := self._nodes():
            self._free(nodes)
        self._terraform.destroy(log)
        for file in (self.paths.in_force, self.paths.deploying, self.paths.nodes, self.paths.written,
                     self.paths.access, self.paths.machine):  # fmt: skip
            durable.remove(file)
        if self._left:
            raise WorkError("; ".join(self._left))

    def remarks(self) -> list[str]:
        return self._left

    def _free(self, nodes: list[Node]) -> None:
        """A machine that does not answer is left out and noted: one that is dead must not hold up the others for ever.
        When it is back, it is known as ours by its owner's file. One that became another deployment's is
        left out, too."""
        connected = Nodes(self.runner, self.paths, nodes)
        silent = [n for n, answers in zip(nodes, self._answer(connected), strict=True) if not answers]
        self._left = [
            f"{n.name} ({n.address}) does not answer, so what was made there stays; when it answers again, "
            "ntier up with it and then ntier down remove it"
            for n in silent
        ]
        nodes = [n for n in nodes if n not in silent]
        owners = self.runner.parallel(lambda n: owner_on(connected, n), nodes)
        others = {n.name: owner for n, owner in zip(nodes, owners, strict=True) if owner not in ("", self.owner)}
        self._left += [
            f"{n.name} ({n.address}) belongs to another deployment by now ({others[n.name]}): nothing is undone there"
            for n in nodes
            if n.name in others
        ]
        nodes = [n for n in nodes if n.name not in others]
        as_they_were = [n for n in nodes if connected.access(n).home]
        self.runner.parallel(lambda n: connected.call(n, existing.leave(self.owner)), as_they_were)
        deployed = [n for n in nodes if n not in as_they_were]
        if deployed:
            play(self.runner, self.paths, ["destroy"], limit=[n.name for n in deployed])
            self.runner.parallel(lambda n: connected.call(n, FORGET_ANSIBLE), deployed)

    def _answer(self, connected: Nodes) -> list[bool]:
        """Of each node, whether SSH reaches it."""

        def answers(node: Node) -> bool:
            try:
                connected.call(node, "true", timeout=20)
            except WorkError:
                return False
            return True

        return self.runner.parallel(answers, connected.all)

    def _free_those_that_leave(self, before: list[Node], spec: Spec, hosts: dict[str, Host]) -> None:
        same = self._deployed_system() in (None, spec.system.name)
        known = Nodes(self.runner, self.paths, before)
        same = same and not any(bool(known.access(n).home) == spec.system.definition.deploys for n in before)
        stays = {(name, host.address) for name, host in hosts.items() if same}
        leaving = [
            n
            for n in before
            if (n.name, n.address) not in stays or n.role != (CLIENT if n.tier == CLIENT else spec.role(n.tier))
        ]
        if leaving:
            durable.remove(self.paths.in_force)
            self._free(leaving)

    def _deployed_system(self) -> str | None:
        """Name of the system that was deployed last; None if nothing is known of it."""
        try:
            return read_json(self.paths.deployment).get("ntier_system")
        except (OSError, ValueError):
            return None

    def _nodes(self) -> list[Node]:
        return read_nodes(self.paths.nodes) if self.paths.nodes.exists() else []

    def _survey(self, spec: Spec, hosts: dict[str, Host]) -> dict[str, Survey]:
        """Raises RequestError with all that is wrong, one argument for each machine."""
        owner = self.owner
        tiers = {name: tier for name, tier, _ in wanted_nodes(spec)}

        def survey_of(item: tuple[str, Host]) -> Survey | RequestError:
            name, host = item
            try:
                return survey(self.runner, self.paths, name, host.access, owner, expected(spec, tiers[name]))
            except RequestError as error:
                return error

        surveys = dict(zip(hosts, self.runner.parallel(survey_of, hosts.items()), strict=True))
        if wrong := [said for said in surveys.values() if isinstance(said, RequestError)]:
            raise RequestError(*map(str, wrong))
        return {name: said for name, said in surveys.items() if isinstance(said, Survey)}

    @property
    def _owner_file(self) -> Path:
        return self.paths.place / "owner"

    @property
    def has_owner(self) -> bool:
        """Whether this state has named itself; if not, nothing anywhere is its own. Nor is what only root may know."""
        return os.path.exists(self._owner_file)

    @property
    def owner(self) -> str:
        """Name of this deployment on its machines, made once. For commands that have a state: others ask `has_owner`
        first."""
        file = self._owner_file
        if not self.has_owner:
            name = re.sub(r"[^A-Za-z0-9.-]", "-", os.uname().nodename)  # a shell gets it as it is
            durable.write(file, f"{name}-{secrets.token_hex(4)}")
        return file.read_text()

    # ---- what is brought to the machines ------------------------------------------------------------------------

    @property
    def _build(self) -> Path:
        return self.paths.root / "setup" / "build.py"

    def _make_parts(self, spec: Spec, inventory: Inventory) -> None:
        """Artefacts, digests of the installations and data, as set-up makes them for images; what is there is kept."""
        build = [sys.executable, str(self._build), "--digests", str(self.paths.install_digests)]
        self.runner.run(build, timeout=1800)
        folder = tables.generated(self.runner, self.paths, spec) if spec.data_in_image else None
        variables = {
            "machine_owner": self.owner,
            "machine_apt_sources": inventory.apt_sources,
            # the machine is its owner's: names and filter rules are added to what is there, SSH stays as open as it was
            "ntier_whole_machine": False,
            "common_controller_addresses": ["any"],
        }
        if folder is not None:
            variables |= {
                "machine_data": str(folder),
                "machine_data_digest": tables.digest(folder),
                "machine_data_tier": spec.data_tier,
            }
        durable.write(self.paths.machine, json.dumps(variables, indent=1))

    # ---- what the harness asks ----------------------------------------------------------------------------------

    def instances(self) -> dict[str, str]:
        nodes = Nodes(self.runner, self.paths, self._nodes())
        answers = self.runner.parallel(lambda n: self._answers(nodes, n), nodes.all)
        return {n.name: "answers" if yes else "silent" for n, yes in zip(nodes.all, answers, strict=True)}

    def _answers(self, nodes: Nodes, node: Node) -> bool:
        try:
            return nodes.call(node, "true", timeout=10, check=False).code == 0
        except WorkError:
            return False

    def cores(self, nodes: list[Node]) -> int:
        known = json.loads(self._surveys_file.read_text())
        return max(known.get(n.name, 1) for n in nodes)

    def cpu_ticks(self, nodes: Nodes) -> dict[str, list[int]]:
        def ask(node: Node) -> tuple[str, list[int]]:
            fields = nodes.call(node, "head -n 1 /proc/stat", timeout=20).out.split()
            return node.name, [int(n) for n in fields[1:9]]

        return dict(self.runner.parallel(ask, nodes.all))

    def stays_awake(self) -> bool:
        """Machines of others are left as they are."""
        return False

    @property
    def _surveys_file(self) -> Path:
        return self.paths.place / "cores.json"

    def guard(self, address: str, nodes: list[Node]) -> None:
        """Raises WorkError unless `address` is one of the deployment's nodes. Whether an address of the Internet may be
        loaded at all was decided when it was assigned (inventory.assign)."""
        ours = {n.address for n in nodes}
        if address not in ours:
            raise WorkError(
                f"{address} is not one of this experiment's nodes ({', '.join(sorted(ours))}); no load is sent"
            )

    def set_limits(self, nodes: list[Node]) -> None:
        """A whole machine has none."""

    def lift_limits(self, nodes: list[Node]) -> None:
        """A whole machine has none."""

    def quota(self, node: Node) -> float | None:
        return None

    def observe(self, directory: Path, remote: str, nodes: Nodes) -> Heartbeats:
        self._heartbeats = Heartbeats(self.runner, nodes, remote, self.paths.logs)
        return self._heartbeats

    def present(self, node: Node) -> bool:
        """Heard of lately, or it answers now and is not another deployment's by now."""
        if self._heartbeats and self._heartbeats.fresh(node):
            return True
        try:
            owner = owner_on(Nodes(self.runner, self.paths, [node]), node, timeout=10)
        except WorkError:
            return False
        return owner in ("", self.owner)

    def newest(self, node: Node, directory: str) -> dict[str, float] | None:
        return self._heartbeats.newest(node) if self._heartbeats else None


def owner_on(connected: Nodes, node: Node, timeout: float = 60) -> str:
    """Whose the machine is; empty: nobody's. Since `up` its shell may have begun to print beside each answer. Raises
    WorkError."""
    return connected.call(node, WHOSE, timeout=timeout).out.rpartition("owner=")[2].partition("\n")[0].strip()


def expected(spec: Spec, tier: str) -> Expected:
    """What a machine must be to become a node of this tier."""
    d = spec.system.definition
    if d.deploys:
        every = [spec.tier(t.name) for t in d.tiers if not t.only or t.name in spec.topology.counts]
        services = tuple(dict.fromkeys(name for t in every for name in t.services))
        ports = {port for t in every for port in t.ports}
        return Strangers(services, ports, tuple(spec.tier(tier).holds) if tier != CLIENT else ())
    if tier != CLIENT:
        part = d.tier(tier)
        return Serving(tuple(part.services), tuple(part.ports), tuple(part.units))
    program = existing.driver_program(spec)
    return Serving(programs=(program,) if program else (), packages=tuple(d.load.driver.packages))


TARGET = Hosts
