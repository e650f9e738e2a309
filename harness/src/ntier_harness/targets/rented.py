"""Targets that rent machines by the hour: Terraform makes them, then they are used as machines that exist already
(`hosts`); `down` destroys them, and asks the provider whether anything is left."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.files import read_json
from ntier_analysis.contracts.nodes import Node
from ntier_analysis.wording import counted

from ntier_harness import durable, systems
from ntier_harness.errors import Interrupted, RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.plan import order, sweep_duration_s
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec
from ntier_harness.ssh import ALONE, CONNECT_S, Access, Nodes, options
from ntier_harness.targets import calibration
from ntier_harness.targets.account import EXPIRES, NODE, OWNER, WORK, Account, Thing
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.inventory import Host, Inventory, wanted_nodes
from ntier_harness.targets.paying import DOWN_S, INSTALL_S, Paying
from ntier_harness.targets.survey import OWNER_FILE, Survey
from ntier_harness.targets.terraform import Failed, Terraform, common_variables

if TYPE_CHECKING:
    from ntier_harness.doctor import Finding
    from ntier_harness.lab import Lab

DEBIAN = "trixie"
"""The base (setup/images) whose packages a rented machine has."""
ANYWHERE = "0.0.0.0/0"
ROUNDS = 20
"""How often `down` looks whether anything is left, SETTLE_S apart."""
SETTLE_S = 2.0
"""What was asked for just before a crash may appear this much later; so nothing must be there twice, this far apart."""
APPLIES = 3
BOOT_S = 300.0
ALIVE_S = 600.0
"""How often machines are told that the controller is there."""
SILENT_S = 3600.0
"""After how long without a word a machine shuts down. The same for all sweeps: it is in the user data, and
machines with other user data would be made anew."""
ALIVE = "systemctl restart ntier-expiry.timer 2>/dev/null; true"
BOOTED = """if command -v cloud-init >/dev/null; then cloud-init status --wait >/dev/null 2>&1; fi
echo "from=${SSH_CONNECTION%% *}" """


class Rented(Paying, Hosts):
    """What all providers have in common. `file`: another offer than the target's own; `budget`: as typed."""

    needs_inventory = False
    secrets: tuple[str, ...]
    """Names of the environment variables without which the provider lets nobody in."""
    user = "root"
    machine_address: str
    """Terraform's address of a node's machine, with {name}."""
    permanent: re.Pattern[str]
    """What the provider says when trying again is of no use."""
    no_capacity: re.Pattern[str]
    """What it says when there is no machine to be had in a location."""

    def __init__(self, runner: Runner, paths: Paths, file: Path | None = None, budget: str | None = None) -> None:
        super().__init__(runner, paths, None)
        self._terraform = Terraform(runner, paths, private=True)
        self.set_terms(file, budget)
        self._alive: threading.Event | None = None
        self._remarks: list[str] = []

    @property
    def account(self) -> Account:
        raise NotImplementedError

    # ---- what may be asked of it --------------------------------------------------------------------------------

    def require_privileges(self) -> None:
        super().require_privileges()
        missing = [name for name in self.secrets if not os.environ.get(name)]
        if missing:
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
        super().check(spec)
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
                    f"machines: {self.offer_file}: Debian 13 does not have what role {role} installs, and no source in "
                    "apt names it; add one (docs/targets.md)"
                )

    def problems(self, spec: Spec) -> list[str]:
        price = self.price(spec, sweep_duration_s(spec, len(order(spec)), deployed=False))
        stop = price and self.budget is not None and price["expected"] + price["spent"] > self.budget
        return [f"the budget of {self.budget:g} {self.offer.currency} ends the sweep early"] if stop else []

    def doctor(self, lab: Lab) -> list[Finding]:
        from ntier_harness.doctor import Finding

        findings = super().doctor(lab)
        for name in self.secrets:
            there = bool(os.environ.get(name))
            mend = "" if there else f"export {name}=... (docs/targets.md)"
            findings.append(Finding(name, "ok" if there else "fail", "set" if there else "not set", mend))
        return findings

    def inventory(self, spec: Spec) -> Inventory:
        return Inventory(self.offer_file, ())

    def assignment(self, spec: Spec) -> dict[str, str]:
        types = {name: self.offer.of(node_type) for name, node_type in self.node_types(spec).items()}
        return {name: f"a {t.type}, {t.price_per_hour:g} {self.offer.currency} per hour" for name, t in types.items()}

    # ---- up -----------------------------------------------------------------------------------------------------

    def up(self, spec: Spec, log: Path) -> list[Node]:
        """Rents what is missing, gives back what is too much, and waits until all machines answer. If that fails, what
        was rented for it is given back."""
        fresh = not self.paths.nodes.exists()
        self._make_keys(spec)
        self._clear_strays()
        if not self.ledger.open():
            self._take_prices_of_today()
            self.check_budget(spec)
        try:
            nodes, hosts = self._reach(spec, log)
            surveys = self._survey(spec, hosts)
            self._make_parts(spec, self.inventory(spec))
            nodes = self._settle(spec, log, nodes, surveys)
            connected = Nodes(self.runner, self.paths, nodes)
            claim = f"mkdir -p {Path(OWNER_FILE).parent} && echo {self.owner} >{OWNER_FILE}; {ALIVE}"
            self.runner.parallel(lambda n: connected.call(n, claim), nodes)
            self._calibrate(connected)
        except (RequestError, WorkError) as error:
            if fresh:
                raise self._given_back(error, log) from error
            raise
        self._keep_alive()
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
        nodes = self._rent(spec, log)
        hosts = self._hosts(nodes)
        said = self._boot(hosts, BOOT_S)
        if not any(said.values()) and self._controllers() != [ANYWHERE]:  # our own address may have changed
            durable.remove(self._controller_file)
            nodes = self._apply(spec, log)
            said = self._boot(hosts, BOOT_S)
        if not any(said.values()):  # others in their place would not answer either
            raise WorkError(
                f"{self.name}: none of {counted(len(said), 'machine')} answers by SSH within {BOOT_S:g} s; is port 22 "
                "open from here to the Internet, and NTIER_CONTROLLER, if it is set, where we come from?"
            )
        if silent := [name for name, address in said.items() if address is None]:
            for name in silent:
                self.ledger.give_back(self.runner.now(), {name})
            self._note_rental(spec)
            nodes = self._apply(spec, log, [self.machine_address.format(name=name) for name in silent])
            hosts = self._hosts(nodes)
            said |= self._boot({name: hosts[name] for name in silent}, BOOT_S)
            if still := [name for name in silent if said[name] is None]:
                raise WorkError(
                    f"{self.name}: {', '.join(still)}: no answer by SSH within {BOOT_S:g} s, nor from the machine that "
                    "replaced it"
                )
        self._learn(said)
        return nodes, hosts

    def _rent(self, spec: Spec, log: Path) -> list[Node]:
        """In the first location that has the machines. Raises WorkError naming those that have not."""
        there = self.location()
        locations = [there] if there in self.offer.locations else list(self.offer.locations)
        for place in locations:
            durable.write(self._location_file, json.dumps(place))
            self._note_rental(spec)
            try:
                return self._apply(spec, log)
            except Failed as error:
                if not self.no_capacity.search(error.said):
                    raise
                self.down(log)
                self.check_budget(spec)
        raise WorkError(f"{self.name}: no machines are free in {', '.join(locations)}; try later, or other types")

    def _note_rental(self, spec: Spec) -> None:
        """Before a machine is asked for."""
        wanted = {name: self.offer.of(node_type) for name, node_type in self.node_types(spec).items()}
        self.ledger.rent(wanted, self.work, self.runner.now())
        for name in {m.node for m in self.ledger.open()} - set(wanted):
            self.ledger.give_back(self.runner.now() + DOWN_S, {name})  # gone when the next apply ends
        self.watch_budget()

    def _take_prices_of_today(self) -> None:
        """What the provider says counts, not the offer's file, which may be old."""
        today = self.account.prices(next(iter(self.offer.locations)))
        types = {}
        for node_type, t in self.offer.node_types.items():
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
        for number in range(1, APPLIES + 1):
            try:
                nodes = self._terraform.apply(self.variables(spec), log, replace or ())
                break
            except Failed as error:
                final = self.permanent.search(error.said) or self.no_capacity.search(error.said)
                if final or number == APPLIES:
                    raise
                self._clear_strays()
                self._note_rental(spec)
        self._write_access()
        machines = self._terraform.outputs["machines"]
        if machines != self._read("machines.json", {}):  # what was deployed is not on all of them any more
            durable.remove(self.paths.in_force)
            durable.write(self.paths.place / "machines.json", json.dumps(machines))
        return nodes

    def variables(self, spec: Spec) -> dict[str, Any]:
        """Input of the Terraform root; no secret is among them."""
        place = self.location() or next(iter(self.offer.locations))
        common = common_variables(spec)
        for tier in common["tiers"]:  # nothing is cloned; which data there are is known by the image's name
            tier["image"] = spec.data_folder if tier["name"] == spec.data_tier else None
        types = {n: t.model_dump(include={"type", "cores", "memory_bytes"}) for n, t in self.offer.node_types.items()}
        return common | {
            "machines": types,
            "surveyed": self._read("surveyed.json", {}),
            "location": place,
            "zone": self.offer.locations[place],
            "image": self.offer.image,
            "labels": self._labels(spec),
            "prefix": f"ntier-{self.owner_label}",
            "controllers": self._controllers(),
            "host_keys": str(self._host_keys),
            "public_key": self._key.with_suffix(".pub").read_text().strip(),
            "silent_s": round(SILENT_S),
            "apt": {name: source.model_dump() for name, source in self.offer.apt.items()},
            **self.offer.options,
        }

    def _labels(self, spec: Spec) -> dict[str, str]:
        """The same as long as the machines are up, so that a second apply changes nothing."""
        labels = self._read("labels.json", None)
        if labels is None:
            expires = self.runner.now() + INSTALL_S + 24 * 3600
            work = re.sub(r"[^A-Za-z0-9_.-]", "-", spec.sweep)[:63].strip("_.-")
            labels = {OWNER: self.owner_label, WORK: work, EXPIRES: f"{expires:.0f}"}
            durable.write(self.paths.place / "labels.json", json.dumps(labels))
        return labels

    @property
    def owner_label(self) -> str:
        """The owner as labels and names of machines may be: letters, digits and -. The drawn part is at its end."""
        return re.sub(r"[^A-Za-z0-9]", "-", self.owner)[-30:].strip("-").lower()

    def _settle(self, spec: Spec, log: Path, nodes: list[Node], surveys: dict[str, Survey]) -> list[Node]:
        """Once the machines have said what they are, and from where they hear us, that is applied too."""
        sizes = {name: {"cores": s.cores, "memory_bytes": s.memory_bytes} for name, s in surveys.items()}
        durable.write(self._surveys_file, json.dumps({n: s.cores for n, s in surveys.items()}))
        applied = self._read("applied.json", {})
        wanted = {"surveyed": sizes, "controllers": self._controllers()}
        if applied != wanted:
            durable.write(self.paths.place / "surveyed.json", json.dumps(sizes))
            nodes = self._apply(spec, log)
            durable.write(self.paths.place / "applied.json", json.dumps(wanted))
        return nodes

    # ---- keys and access ----------------------------------------------------------------------------------------

    @property
    def _key(self) -> Path:
        return self.paths.place / "id_ed25519"

    @property
    def _host_keys(self) -> Path:
        return self.paths.place / "host_keys"

    @property
    def _controller_file(self) -> Path:
        return self.paths.place / "controller.json"

    @property
    def _location_file(self) -> Path:
        return self.paths.place / "location.json"

    def _read(self, name: str, otherwise: Any) -> Any:
        try:
            return read_json(self.paths.place / name)
        except (OSError, ValueError):
            return otherwise

    def _make_keys(self, spec: Spec) -> None:
        """Our key, and a host key for each node, so that no first connection is blind."""
        self._host_keys.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in (self._key, *(self._host_keys / name for name, _, _ in wanted_nodes(spec))):
            if not (file.exists() and file.with_name(f"{file.name}.pub").exists()):
                for half in (file, file.with_name(f"{file.name}.pub")):
                    half.unlink(missing_ok=True)
                self.runner.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", file.name, "-f", str(file)])

    def _write_access(self) -> None:
        """How SSH reaches each node, and the one host key that is taken for it."""
        addresses: dict[str, str] = self._terraform.outputs["ssh"]
        lines = [
            f"{address} {' '.join((self._host_keys / f'{name}.pub').read_text().split()[:2])}\n"
            for name, address in addresses.items()
        ]
        durable.write(self.paths.known_hosts, "".join(lines))
        access = {name: dataclasses.asdict(self._access(address)) for name, address in addresses.items()}
        durable.write(self.paths.access, json.dumps(access, indent=1))

    def _access(self, address: str) -> Access:
        return Access(address, str(self.paths.known_hosts), self.user, key_file=str(self._key))

    def _hosts(self, nodes: list[Node]) -> dict[str, Host]:
        addresses: dict[str, str] = self._terraform.outputs["ssh"]
        return {n.name: Host(n.address, self._access(addresses[n.name])) for n in nodes}

    def _controllers(self) -> list[str]:
        """Networks that SSH is let in from: NTIER_CONTROLLER, or the address that the machines saw us come from; at
        first, any."""
        given = os.environ.get("NTIER_CONTROLLER")
        return [c.strip() for c in given.split(",")] if given else self._read("controller.json", [ANYWHERE])

    def _boot(self, hosts: dict[str, Host], wait_s: float) -> dict[str, str | None]:
        """Waits until every machine's first boot is done. Node -> our address as it sees it; None: it is silent."""
        end = self.runner.monotonic() + wait_s

        def one(host: Host) -> str | None:
            argv = ["ssh", *ALONE, *options(host.access, self.paths), host.access.destination]
            while True:
                with contextlib.suppress(WorkError):
                    left = max(2.0 * CONNECT_S, end - self.runner.monotonic())
                    done = self.runner.run([*argv, BOOTED], check=False, timeout=left)
                    if done.code == 0 and (match := re.search(r"^from=(\S+)$", done.out, re.M)):
                        return match[1]
                if self.runner.monotonic() >= end:
                    return None
                self.runner.sleep(2.0)

        return dict(zip(hosts, self.runner.parallel(one, hosts.values()), strict=True))

    def _learn(self, said: dict[str, str | None]) -> None:
        seen = sorted({f"{address}/32" for address in said.values() if address and ":" not in address})
        if seen and not set(seen) <= set(self._controllers()):
            durable.write(self._controller_file, json.dumps(seen))

    # ---- while they are up --------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        """Tells the machines every ALIVE_S that we are there, as long as this process lives."""
        if self._alive is not None:
            return
        self._alive = end = threading.Event()

        def tell() -> None:
            while not end.wait(ALIVE_S):
                with contextlib.suppress(WorkError, Interrupted, OSError, ValueError):
                    self.say_that_we_are_there(Nodes(self.runner, self.paths, self._nodes()))

        threading.Thread(target=tell, daemon=True).start()

    def say_that_we_are_there(self, nodes: Nodes) -> None:
        self.runner.parallel(lambda n: nodes.call(n, ALIVE, check=False), nodes.all)

    def _calibrate(self, nodes: Nodes) -> None:
        """Machines that have not been probed yet; the record is kept per machine, not per node."""
        known, machines = self.calibration(), self._read("machines.json", {})
        new = [n for n in nodes.all if known.get(n.name, {}).get("machine") != machines[n.name]]
        if new:
            probed = calibration.probe(nodes, new)
            kept = {name: measures for name, measures in known.items() if machines.get(name) == measures.get("machine")}
            known = kept | {name: measures | {"machine": machines[name]} for name, measures in probed.items()}
            durable.write(self.paths.place / "calibration.json", json.dumps(known, indent=1))

    def remarks(self) -> list[str]:
        types = {m.node: m.type for m in self.ledger.open()}
        return [*self._remarks, *calibration.unequal(self.calibration(), types)]

    def instances(self) -> dict[str, str]:
        """As the provider says."""
        things = self.account.find(self.owner_label)
        return {t.labels.get(NODE, t.name): t.status or "there" for t in things if t.kind == "machine"}

    # ---- down ---------------------------------------------------------------------------------------------------

    def _clear_strays(self) -> None:
        """Removes what is ours and in no state: what a crash made without noting it; and machines that are off."""
        known = self._terraform.ids()
        things = self.account.find(self.owner_label)
        off = {t.id for t in things if t.kind == "machine" and t.status in ("off", "stopping", "deleting", "unknown")}
        strays = [t for t in things if known is None or t.id not in known or t.id in off]
        if strays:
            self.account.remove(strays)
        stay = {t.labels.get(NODE) for t in things if t.kind == "machine" and t not in strays}
        gone = {m.node for m in self.ledger.open()} - stay
        if gone:  # what is made in their place costs an hour of its own
            self.ledger.give_back(self.runner.now(), gone)
        if known is None:
            self._terraform.forget()

    def down(self, log: Path) -> None:
        """Destroys everything, then asks the provider until nothing with our label is left. Raises WorkError naming
        what is."""
        if self._alive is not None:
            self._alive.set()
            self._alive = None
        if nodes := self._nodes():
            Nodes(self.runner, self.paths, nodes).disconnect()
        failed = ""
        if self._terraform.ids() is None:
            self._terraform.forget()
        try:
            self._terraform.destroy(log)
        except WorkError as error:  # what is left is removed below; this says why, if that fails too
            failed = f" ({error})"
        left = self._remove_all()
        if left:
            names = ", ".join(map(str, left))
            raise WorkError(f"{self.name}: still there after {ROUNDS} attempts to remove it: {names}{failed}")
        self._terraform.forget()
        self.ledger.give_back(self.runner.now())
        place = self.paths.place
        for file in (self.paths.in_force, self.paths.nodes, self.paths.written, self.paths.access, self.paths.machine,
                     self.paths.known_hosts, self._location_file, place / "labels.json", place / "surveyed.json",
                     place / "applied.json", place / "calibration.json",
                     place / "machines.json"):  # fmt: skip
            durable.remove(file)

    def _remove_all(self) -> list[Thing]:
        """Removes what has our label until two looks, SETTLE_S apart, find nothing. Returns what is left."""
        empty = 0
        left: list[Thing] = []
        for _ in range(ROUNDS):
            left = self.account.find(self.owner_label)
            empty = 0 if left else empty + 1
            if empty == 2:
                return []
            if left:
                with contextlib.suppress(WorkError):
                    self.account.remove(left)
            self.runner.sleep(SETTLE_S)
        return left or self.account.find(self.owner_label)

    def leftovers(self) -> list[dict[str, Any]]:
        """Everything with a label of this project in the account: {thing, owner, work, ours, in_use, expired}."""
        now, ours = self.runner.now(), self.owner_label
        return [
            {
                "kind": t.kind,
                "name": t.name,
                "id": t.id,
                "detail": t.detail,
                "owner": t.owner,
                "work": t.labels.get(WORK, ""),
                "ours": t.owner == ours,
                "in_use": t.owner == ours and self.paths.nodes.exists(),
                "expired": t.expires_s is not None and t.expires_s < now,
            }
            for t in self.account.find()
        ]

    def remove_leftovers(self, leftovers: list[dict[str, Any]]) -> None:
        """Removes these, and notes it in the ledger. Raises WorkError if one cannot be removed."""
        ids = {(f["kind"], f["id"]) for f in leftovers}
        self.account.remove([t for t in self.account.find() if (t.kind, t.id) in ids])
        self.runner.sleep(SETTLE_S)
        left = [t for t in self.account.find() if (t.kind, t.id) in ids]
        if left:
            raise WorkError(f"{self.name}: still there: {', '.join(map(str, left))}")
        if not self.account.find(self.owner_label):
            self.ledger.give_back(self.runner.now())
