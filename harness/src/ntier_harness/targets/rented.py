"""Targets that rent machines by the hour: Terraform makes them, then they are used as machines that exist already
(`hosts`); `down` destroys them, and asks the provider whether anything is left."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.nodes import Node
from ntier_analysis.wording import counted

from ntier_harness import durable, systems
from ntier_harness.errors import RequestError, WorkError, unknown
from ntier_harness.paths import Paths
from ntier_harness.plan import INSTALL_S, order, sweep_duration_s
from ntier_harness.runner import Runner
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.ssh import Nodes, check_place
from ntier_harness.targets import calibration, clearing, reaching
from ntier_harness.targets.account import EXPIRES, NODE, OWNER, WORK
from ntier_harness.targets.asking import is_token
from ntier_harness.targets.clearing import Clearing
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.imaging import Imaging
from ntier_harness.targets.inventory import Host, Inventory, wanted_nodes
from ntier_harness.targets.paying import Paying
from ntier_harness.targets.reaching import Reaching
from ntier_harness.targets.rental import MachineType, read_offer
from ntier_harness.targets.survey import OWNER_FILE, Survey
from ntier_harness.targets.terraform import Failed, Terraform, common_variables

if TYPE_CHECKING:
    from ntier_harness.doctor import Finding
    from ntier_harness.lab import Lab

DEBIAN = "trixie"
"""The base (setup/images) whose packages a rented machine has."""
APPLIES = 3
NODE_NAME_MOST = 26
"""Characters that a host's name of 63 has left beside `ntier-`, the owner's 30 (`Clearing.owner_label`) and a dash."""


class Rented(Paying, Imaging, Reaching, Clearing, Hosts):
    """What all providers have in common. `file`: another offer than the target's own; `budget`: as typed."""

    needs_inventory = False
    secrets: tuple[str, ...] = ()
    """Names of the environment variables without which the provider lets nobody in."""
    machine_address: str
    """Terraform's address of a node's machine, with {name}."""
    permanent: re.Pattern[str]
    """What the provider says when trying again is of no use."""
    no_capacity: re.Pattern[str]
    """Its answer if no machine is available in a location."""
    options: tuple[str, ...] = ("network",)
    """Variables of its Terraform root that an offer may set. Others are ours: without our labels, what is made would
    not be found again."""

    def __init__(self, runner: Runner, paths: Paths, file: Path | None = None, budget: str | None = None) -> None:
        super().__init__(runner, paths, None)
        self._terraform = Terraform(runner, paths, private=True)
        self.set_terms(file, budget)
        self._remarks: list[str] = []
        self.images_of_tiers = {}

    # ---- what may be asked of it --------------------------------------------------------------------------------

    @classmethod
    def missing(cls) -> list[str]:
        """Environment variables that the provider needs and that are not set."""
        return [name for name in cls.secrets if not os.environ.get(name)]

    def require_privileges(self) -> None:
        super().require_privileges()
        self.controllers()
        if spoilt := next((name for name in self.secrets if not is_token(os.environ.get(name, ""))), ""):
            raise RequestError(
                f"{self.name}: {spoilt} has a blank, a line's end or another sign in it that no token has; set it anew"
            )
        if missing := self.missing():
            raise RequestError(
                f"{self.name}: {missing[0]} is not in the environment; docs/targets.md says how to get it"
            )

    @classmethod
    def parse_scale(cls, text: str, _cores: int, _shares: float) -> float:
        if text not in ("auto", "1", "1.0"):
            raise RequestError(f"scale: {text}: target {cls.name} has whole machines, nothing is scaled; allowed is 1")
        return 1.0

    def check(self, spec: Spec) -> None:
        if not spec.system.definition.deploys:
            raise RequestError(
                f"target: system {spec.system.name} runs already (deploy: none); a rented machine has nothing on it"
            )
        for name in self.offer.options:
            if name not in self.options:
                raise unknown(f"machines: {self.offer_file}: options", name, self.options)
        super().check(spec)
        if long := next((name for name, _, _ in wanted_nodes(spec) if len(name) > NODE_NAME_MOST), ""):
            raise RequestError(
                f"{self.name}: {long} is too long for the name of its machine; allowed are {NODE_NAME_MOST} characters"
                ", so give the tier a shorter name"
            )
        if not self.runner.has("ssh-keygen"):
            raise RequestError(f"{self.name}: ssh-keygen is missing here; apt-get install openssh-client")
        self._check_sources(spec)
        self.check_budget(spec)

    def _check_sources(self, spec: Spec) -> None:
        """What is installed can be had: told before anything is paid for."""
        bases = systems.bases(self.paths.root)
        known = {role for source in self.offer.apt.values() for role in source.roles}
        for role in (role for tier in spec.topology.counts for role in spec.roles(tier)):
            if bases.get(role, DEBIAN) != DEBIAN and role not in known:
                raise RequestError(
                    f"machines: {self.offer_file}: Debian 13 lacks the packages of role {role}, and no source in "
                    "apt has them; add one (docs/targets.md)"
                )

    def problems(self, spec: Spec) -> list[str]:
        price = self.price(spec, sweep_duration_s(spec, len(order(spec)), deployed=False, up=True))
        stop = price and self.budget is not None and price["expected"] + price["spent"] > self.budget
        return [f"the budget of {self.budget:g} {self.offer.currency} ends the sweep early"] if stop else []

    def doctor(self, lab: Lab) -> list[Finding]:
        from ntier_harness.doctor import Finding

        findings = super().doctor(lab)
        missing = self.missing()
        findings += [Finding(name, "ok", "set", "") for name in self.secrets if name not in missing]
        findings += [Finding(name, "fail", "not set", f"export {name}=... (docs/targets.md)") for name in missing]
        if not missing:
            findings += self._offer_findings()
        return findings

    def prepare(self, spec: Spec) -> None:
        """What is brought to the machines is made, and with it the digests of what is installed."""
        self._make_parts(spec, self.inventory(spec))

    def _offer_findings(self) -> list[Finding]:
        """Whether the provider lets us in and has what the offer names."""
        from ntier_harness.doctor import Finding

        try:
            there, lacking = self.account.find(), self.account.lacks(self.offer)
        except WorkError as error:
            return [Finding("account", "fail", str(error), "see docs/targets.md")]
        mend = f"edit a copy of {self.offer_file} and give it as --machines"
        ours = [t for t in there if self.has_owner and t.owner == self.owner_label]
        account = Finding("account", "ok", f"lets us in; {counted(len(ours), 'thing')} of ours in it")
        return [account, *(Finding("machines", "fail", what, mend) for what in lacking)]

    def inventory(self, spec: Spec) -> Inventory:
        return Inventory(self.offer_file, ())

    def assignment(self, spec: Spec) -> dict[str, str]:
        return {
            name: f"a {t.type}" + (f", {t.price_per_hour:g} {self.offer.currency} per hour" if t.price_per_hour else "")
            for name, t in self._wanted(spec).items()
        }

    @property
    def _location_file(self) -> Path:
        return self.paths.place / "location.json"

    # ---- up -----------------------------------------------------------------------------------------------------

    def up(self, spec: Spec, log: Path) -> list[Node]:
        """Rents what is missing, gives back what is too much, and waits until all machines answer. If that fails, what
        was rented for it is given back."""
        check_place(self.paths)
        if self.only is None:
            durable.remove(self.building)  # from now on the machines may hold what is in no snapshot
        fresh = not self.paths.nodes.exists()
        self.make_keys(spec)
        self.check_account()
        self.ledger.recognise(self.read("machines.json", {}))
        self.clear_strays()
        self._check_terms(spec)
        self.prepare(spec)
        self.choose_images(spec)
        try:
            nodes, hosts = self._reach(spec, log)
            surveys = self._survey(spec, hosts)
            nodes = self._settle(spec, log, nodes, surveys)
            connected = Nodes(self.runner, self.paths, nodes)
            claim = f"mkdir -p {Path(OWNER_FILE).parent} && echo {self.owner} >{OWNER_FILE}; {reaching.ALIVE}"
            self.runner.parallel(lambda n: connected.call(n, claim), nodes)
            if self.only is None:
                self._calibrate(connected)
        except (RequestError, WorkError) as error:
            if fresh:
                raise self._given_back(error, log) from error
            raise
        self.keep_alive()
        return nodes

    def _given_back(self, error: Exception, log: Path) -> Exception:
        """The error, once nothing of the attempt is left."""
        try:
            with self.runner.stop.deferred():
                self.down(log)
        except WorkError as second:
            return WorkError(f"{error}; and giving back failed: {second}; {self.still_rented()}")
        kind = RequestError if isinstance(error, RequestError) else WorkError
        return kind(f"{error}; everything was given back")

    def _reach(self, spec: Spec, log: Path) -> tuple[list[Node], dict[str, Host]]:
        """Machines that answer by SSH. One that does not is replaced once, then named."""
        fresh = not self.paths.nodes.exists()
        nodes = self._rent(spec, log)
        hosts = self.hosts(nodes)
        said = self.boot(hosts)
        if not any(said.values()) and self.controllers() != [reaching.ANYWHERE]:  # our own address may have changed
            durable.remove(self.controller_file)
            nodes = self._apply(spec, log)
            said = self.boot(hosts)
        if not any(said.values()):  # others in their place would not answer either
            raise WorkError(
                f"{self.name}: none of {counted(len(said), 'machine')} answers by SSH within {reaching.BOOT_S:g} s; "
                "check that port 22 is open from here to the Internet, and that NTIER_CONTROLLER, if set, names this "
                "machine"
            )
        if silent := [name for name, address in said.items() if address is None]:
            for name in silent:
                self.ledger.give_back(self.runner.now(), {name})
            self._note_rental(spec)
            try:
                nodes = self._apply(spec, log, [self.machine_address.format(name=name) for name in silent])
            except Failed as error:
                if not self.no_capacity.search(error.said):
                    raise
                raise self._none_instead(silent, fresh=fresh) from None
            hosts = self.hosts(nodes)
            said |= self.boot({name: hosts[name] for name in silent})
            if still := [name for name in silent if said[name] is None]:
                raise WorkError(
                    f"{self.name}: {', '.join(still)}: no answer by SSH within {reaching.BOOT_S:g} s, nor from the "
                    "machine that replaced it"
                )
        self.learn(said)
        return nodes, hosts

    def _rent(self, spec: Spec, log: Path) -> list[Node]:
        """In the first location that has the machines; where some are up, in theirs. Raises WorkError naming those that
        have not, RequestError if the budget does not cover the prices of the next one."""
        locations = self._places()
        for place in locations:
            if place != locations[0]:
                self._take_prices_of_today(place)
                self.check_budget(spec)
            durable.write(self._location_file, json.dumps(place))
            there = {m.node for m in self.ledger.open()} - self.made_anew(spec)
            self._note_rental(spec)
            try:
                return self._apply(spec, log)
            except Failed as error:
                if not self.no_capacity.search(error.said):
                    raise
                if self.paths.nodes.exists():
                    raise self._no_more(place, [name for name in self.node_types(spec) if name not in there]) from None
                self.down(log)
        raise WorkError(f"{self.name}: no machines are free in {', '.join(locations)}; try later, or other types")

    def _no_more(self, place: str, lacking: list[str], why: str = "") -> WorkError:
        """The error where some machines are up and others cannot come beside them: those may hold what took an hour, or
        be wanted for something else."""
        with contextlib.suppress(WorkError):  # what was asked for and did not come costs nothing
            self.clear_strays()
        return WorkError(
            f"{self.name}: {place} has no free machine for {', '.join(lacking)}{why}; the others stay, what was to be "
            "replaced may be gone. Try later, or other types; or, if all may be anew, ntier down --target "
            f"{self.name}: then each of {', '.join(self.offer.locations)} is tried"
        )

    def _none_instead(self, silent: list[str], *, fresh: bool) -> WorkError:
        """The error where a machine that does not answer is gone, and no other one comes in its place. `fresh`: none
        was up before, so `up` gives back the others."""
        if not fresh:
            return self._no_more(self.location(), silent, " to replace what did not answer by SSH")
        return WorkError(
            f"{self.name}: {', '.join(silent)}: no answer by SSH within {reaching.BOOT_S:g} s, and {self.location()} "
            f"has no free machine instead; try later, other types, or another location first in {self.offer_file}"
        )

    def _places(self) -> list[str]:
        """Locations to try, in their order: the one where machines are up, or all, first where an attempt broke off."""
        there = self.location()
        if there not in self.offer.locations:
            return list(self.offer.locations)
        if self.paths.nodes.exists():
            return [there]
        return [there, *(place for place in self.offer.locations if place != there)]

    def _note_rental(self, spec: Spec) -> None:
        """Before a machine is asked for."""
        wanted, anew = self._wanted(spec), self.made_anew(spec)
        if anew or set(wanted) - {m.node for m in self.ledger.open()}:
            self.check_new(spec)
        if not self.ledger.open():
            self.note_account()
        self.ledger.rent(wanted, self.work, self.runner.now(), anew)
        self.watch_budget()

    def _wanted(self, spec: Spec) -> dict[str, MachineType]:
        """Node -> the type of its machine."""
        return {name: self.offer.of(node_type) for name, node_type in self.node_types(spec).items()}

    def made_anew(self, spec: Spec) -> set[str]:
        """Those whose type or part changes, which is in the machine's user data (terraform/modules/first_boot): each is
        another machine, whose hours begin anew. Not those that are noted with this type beside another record, since
        that is under way."""
        types: dict[str, list[str]] = {}
        for machine in self.ledger.open():
            types.setdefault(machine.node, []).append(machine.type)
        roles = {n.name: n.role for n in self._nodes()}
        tiers = {name: tier for name, tier, _ in wanted_nodes(spec)}
        system = self.read("topology.auto.tfvars.json", {}).get("system", spec.system.name)

        def changes(name: str, node_type: str) -> bool:
            role = CLIENT if tiers[name] == CLIENT else spec.role(tiers[name])
            of_another_part = (roles.get(name, role), system) != (role, spec.system.name)
            return self.offer.of(node_type).type not in types[name] or (len(types[name]) == 1 and of_another_part)

        return {name for name, node_type in self.node_types(spec).items() if name in types and changes(name, node_type)}

    def _check_terms(self, spec: Spec) -> None:
        """Raises RequestError if the provider does not have what the offer names, or the budget does not cover it.
        Where machines are up, today's prices are of what comes beside them, or in the place of one that is gone."""
        first = not self.ledger.open()
        if first and (lacking := self.account.lacks(self.offer)):
            raise RequestError(f"machines: {self.offer_file}: {'; '.join(lacking)}")
        self._take_prices_of_today(self._places()[0])
        if first:
            self.check_budget(spec)

    def _take_prices_of_today(self, place: str) -> None:
        """The provider's prices in this location count, not those of the offer's file, which may be old."""
        today = self.account.prices(place)
        types, self._remarks = {}, []
        for node_type, t in read_offer(self.offer_file).node_types.items():
            now = today.get(t.type, t.price_per_hour)
            types[node_type] = t.model_copy(update={"price_per_hour": round(now, 5)})
            if abs(now - t.price_per_hour) > 0.02 * t.price_per_hour:
                remark = (
                    f"{t.type} costs {now:.4f} {self.offer.currency} per hour today, {self.offer_file.name} of "
                    f"{self.offer.date} says {t.price_per_hour:g}; today's price counts"
                )
                self._remarks += [remark] * (remark not in self._remarks)
        self.offer = self.offer.model_copy(update={"node_types": types})

    def _apply(self, spec: Spec, log: Path, replace: list[str] | None = None) -> list[Node]:
        """Tries again what may go better the next time; what a failed attempt made without knowing it goes first."""
        if self.only is not None:
            durable.write(self.building, "")
        for number in range(1, APPLIES + 1):
            began = self.runner.now()
            try:
                nodes = self._terraform.apply(self.variables(spec), log, replace or ())
                break
            except Failed as error:
                error = self._explained(error)
                final = self.permanent.search(error.said) or self.no_capacity.search(error.said)
                if final or number == APPLIES:
                    raise error from None
                self.clear_strays()
                self._note_rental(spec)
        self.write_access()
        machines, before = self._terraform.outputs["machines"], self.read("machines.json", {})
        # until now those that went cost as well
        self.ledger.settle(began, self.runner.now(), machines, self._wanted(spec))
        if machines != before:  # what was deployed is not on all of them any more
            durable.remove(self.paths.in_force)
            durable.write(self.paths.place / "machines.json", json.dumps(machines))
        return nodes

    def _explained(self, error: Failed) -> Failed:
        """With what the provider says of machines that it could not make, which Terraform's errors may leave out."""
        with contextlib.suppress(WorkError):
            faults = dict.fromkeys(t.fault for t in self.account.find(self.owner_label) if t.fault)
            if faults:
                return Failed(f"{error}; the cloud says: {'; '.join(faults)}", "\n".join([error.said, *faults]))
        return error

    def variables(self, spec: Spec) -> dict[str, Any]:
        """Input of the Terraform root; no secret is among them."""
        place = self.location() or next(iter(self.offer.locations))
        common = common_variables(spec)
        for tier in common["tiers"]:  # nothing is cloned; which data there are is known by this name
            tier["image"] = spec.data_folder if tier["name"] == spec.data_tier else None
        types = {n: t.model_dump(include={"type", "cores", "memory_bytes"}) for n, t in self.offer.node_types.items()}
        return common | {
            "machines": types,
            "surveyed": self.read("surveyed.json", {}),
            "location": place,
            "zone": self.offer.locations[place],
            "image": self.offer.image,
            "labels": self._labels(spec),
            "prefix": f"ntier-{self.owner_label}",
            "controllers": self.controllers(),
            "host_keys": str(self.host_keys),
            "public_key": self.key.with_suffix(".pub").read_text().strip(),
            "silent_s": round(reaching.SILENT_S),
            "apt": {name: source.model_dump() for name, source in self.offer.apt.items()},
            **(self.image_variables if self.keeps_snapshots else {}),
            **self.offer.options,
        }

    def _labels(self, spec: Spec) -> dict[str, str]:
        """The same as long as the machines are up, so that a second apply changes nothing."""
        labels = self.read("labels.json", None)
        if labels is None:
            expires = self.runner.now() + INSTALL_S + 24 * 3600
            work = re.sub(r"[^A-Za-z0-9_.-]", "-", self.work or spec.sweep)[:63].strip("_.-")
            labels = {OWNER: self.owner_label, WORK: work, EXPIRES: f"{expires:.0f}"}
            durable.write(self.paths.place / "labels.json", json.dumps(labels))
        return labels

    def node_types(self, spec: Spec) -> dict[str, str]:
        tiers = {name: tier for name, tier, _ in wanted_nodes(spec)}
        return {n: t for n, t in super().node_types(spec).items() if self.only is None or tiers[n] in self.only}

    def _settle(self, spec: Spec, log: Path, nodes: list[Node], surveys: dict[str, Survey]) -> list[Node]:
        """Once the machines have said what they are, and from where they hear us, that is applied too."""
        sizes = {name: {"cores": s.cores, "memory_bytes": s.memory_bytes} for name, s in surveys.items()}
        durable.write(self._surveys_file, json.dumps({n: s.cores for n, s in surveys.items()}))
        applied = self.read("applied.json", {})
        wanted = {"surveyed": sizes, "controllers": self.controllers()}
        if applied != wanted:
            durable.write(self.paths.place / "surveyed.json", json.dumps(sizes))
            nodes = self._apply(spec, log)
            durable.write(self.paths.place / "applied.json", json.dumps(wanted))
        return nodes

    # ---- while they are up --------------------------------------------------------------------------------------

    def _calibrate(self, nodes: Nodes) -> None:
        """Machines that have not been probed yet; the record is kept per machine, not per node."""
        known, machines = self.calibration(), self.read("machines.json", {})
        new = [n for n in nodes.all if known.get(n.name, {}).get("machine") != machines[n.name]]
        if new:
            probed = calibration.probe(nodes, new)
            kept = {name: measures for name, measures in known.items() if machines.get(name) == measures.get("machine")}
            known = kept | {name: measures | {"machine": machines[name]} for name, measures in probed.items()}
            durable.write(self.paths.place / "calibration.json", json.dumps(known, indent=1))

    def remarks(self) -> list[str]:
        types = {m.node: m.type for m in self.ledger.open()}
        return [*self._remarks, *self.outdated_images, *calibration.unequal(self.calibration(), types)]

    def stay(self) -> None:
        self.say_that_we_are_there(Nodes(self.runner, self.paths, self._nodes()))
        self.keep_alive()

    def instances(self) -> dict[str, str]:
        """As the provider says."""
        if not self.has_owner:
            return {}
        things = self.account.find(self.owner_label)
        return {t.labels.get(NODE, t.name): t.status or "there" for t in things if t.kind == "machine"}

    # ---- down ---------------------------------------------------------------------------------------------------

    def down(self, log: Path) -> None:
        """Destroys everything, then asks the provider until nothing with our label is left. Raises WorkError naming
        what is, RequestError if this may be another account."""
        self.check_account()
        self.fall_silent()
        if nodes := self._nodes():
            Nodes(self.runner, self.paths, nodes).disconnect()
        failed = ""
        if self._terraform.ids() is None:
            self._terraform.forget()
        with contextlib.suppress(WorkError):  # Terraform would wait for minutes for what these use
            self.clear_strays()
        try:
            self._terraform.destroy(log)
        except WorkError as error:  # what is left is removed below; this says why, if that fails too
            failed = f" ({error})"
        left = self.remove_all()
        if left:
            names = ", ".join(map(str, left))
            raise WorkError(f"{self.name}: still there after {clearing.ROUNDS} attempts to remove it: {names}{failed}")
        self._terraform.forget()
        self.ledger.give_back(self.runner.now())
        place = self.paths.place
        for file in (self.paths.in_force, self.paths.deploying, self.paths.nodes, self.paths.written,
                     self.paths.access, self.paths.machine, self.paths.known_hosts, self._location_file,
                     place / "labels.json", place / "surveyed.json", place / "applied.json", self.building,
                     place / "calibration.json", place / "machines.json", self._account_file):  # fmt: skip
            durable.remove(file)
