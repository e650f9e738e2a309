"""Deployment: Ansible with the experiment's variables, and the warm-up that follows it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.wording import counted

from ntier_harness import durable, existing, tables
from ntier_harness.catalog import Phases
from ntier_harness.connections import services
from ntier_harness.drivers import REMOTE, of_system
from ntier_harness.drivers.jmeter import situations_file
from ntier_harness.errors import WorkError
from ntier_harness.installed import hash_of, of_own_roles, of_roles
from ntier_harness.lab import Lab
from ntier_harness.load import MAX_BOOT_S, Generator
from ntier_harness.node_state import LOADED, WARM, are_kept, drop, identity, in_force, keep, reset, restore
from ntier_harness.plan import warm_rounds
from ntier_harness.playbooks import play
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.systems.reading import FILE as SYSTEM_FILE

SECRETS = ("app_db_password", "middleware_db_password", "monitor_db_password")
SETTLED_JIT = 0.1  # share of a node's CPU that its compilers used over a round, at several times the speed of a trial
# CPU seconds of the compilers of all JVMs on a node; in the kernel's own count, since not every JVM tells. In a node's
# own locale awk might print a decimal comma.
JIT_CPU = (
    "cat /proc/[0-9]*/task/[0-9]*/stat 2>/dev/null | sed -n 's/^[0-9]* (C[12] Compil[^)]*) //p' | "
    "LC_ALL=C awk -v tick=$(getconf CLK_TCK) '{n += $12 + $13} END {print n / tick}'"
)
WARM_LEAST = 300  # interactions served in all rounds; below this a warm-up did not reach the pages. Work may be less
WARM_USERS_PER_CORE = 10  # of the host or the largest node; they hardly think, so that the nodes work all the time
WARM_THINK_S = 0.1
SITUATIONS = 2000  # where users of trials start: enough that few of them start at the same place


class TooFew(WorkError):
    """The system serves, but so little in a warm-up of its length that this is none. To mend it changes nothing."""


def write_secrets(file: Path) -> None:
    """Passwords of this deployment, made once; YAML that only its owner can read."""
    if not file.exists():
        text = "".join(f"{name}: {secrets.token_urlsafe(24)}\n" for name in SECRETS)
        durable.write(file, text, mode=0o600)


def of_tiers(lab: Lab, spec: Spec) -> dict[str, Any]:
    """What playbooks must know of the system beside its settings: roles, reset command and callers of each tier,
    requests that show that all tiers serve."""
    d = spec.system.definition
    return {
        "ntier_system": d.name,
        "ntier_roles": {tier: spec.roles(tier) for tier in spec.topology.counts},
        "ntier_reset": {r.tier: opaque(d.reset_of(r.tier)) for r in d.reset},
        **installs(lab, spec),
        **tables.for_roles(lab.runner, lab.paths, spec),
        **({"ntier_data_seed": d.data.seed} if d.data and not d.data.generate else {}),
        **tables.of_image(lab.paths, spec),
        "common_services": services(spec),
        "client_load_files": [str(path) for path in of_system.files(spec.system, lab.paths.workloads)],
        "client_load_packages": d.load.driver.packages,
        "ntier_verify": [
            {"name": f"{r.name} of {node.name}", "url": f"http://{node.address}:{r.port}{r.path}", "status": r.status,
             "contains": r.contains}
            for r in d.verify.requests for node in lab.nodes.tier(r.tier)
        ],
    }  # fmt: skip


def opaque(text: str) -> str:
    """For Ansible, which would evaluate braces in a text."""
    return base64.b64encode(text.encode()).decode()


def installs(lab: Lab, spec: Spec) -> dict[str, Any]:
    """Digest of the installation of each role, if the system has roles of its own; set-up knows those of the shared
    roles only."""
    own = of_own_roles(lab.paths, spec)
    return {"ntier_install_digests": of_roles(lab.paths, spec)} if own else {}


def digest(lab: Lab, spec: Spec, variables: dict[str, Any]) -> str:
    """What a deployment is made of: variables, nodes, and the files that install and configure them."""
    h = hashlib.sha256(json.dumps(variables, sort_keys=True).encode())
    for file in (lab.paths.nodes, lab.paths.install_digests, lab.paths.machine):
        h.update(file.read_bytes() if file.exists() else b"")
    if not spec.system.definition.deploys:
        for tier in (*spec.topology.counts, CLIENT):
            h.update(existing.archive(existing.files(lab.paths, spec, tier)))
        return h.hexdigest()
    ansible = lab.paths.root / "ansible"
    places = [*(ansible / part for part in ("roles", "playbooks", "plugins")), spec.system.folder / "roles"]
    places += of_system.files(spec.system, lab.paths.workloads)
    h.update(hash_of(lab.paths.root, places).encode())
    return h.hexdigest()


def is_deployed(lab: Lab, wanted: str) -> bool:
    """Whether the deployment in force is the wanted one, and healthy."""
    if in_force(lab).get("digest") != wanted:
        return False
    try:
        lab.nodes.connect()
        reset(lab)
    except WorkError as error:
        lab.screen.say(f"deploy again: {error}")
        return False
    return True


def deploy(lab: Lab, spec: Spec, variables: dict[str, Any], *, force: bool = False) -> bool:
    """Installs, configures, starts and verifies, with the data as they were loaded; does nothing if it is in force and
    healthy. Returns whether it ran."""
    write_secrets(lab.paths.secrets)
    if lab.paths.written.exists():
        lab.screen.step("restore the data that users of an earlier run changed")
        lab.nodes.connect()
        if are_kept(lab, spec, lab.paths.written.read_text().splitlines()[1:]):
            restore(lab, spec, LOADED)
        else:
            durable.remove(lab.paths.in_force)
            drop(lab, spec)
        durable.remove(lab.paths.written)
    variables = variables | of_tiers(lab, spec)
    durable.write(lab.paths.deployment, json.dumps(variables, indent=1))
    wanted = digest(lab, spec, variables)
    if not force and is_deployed(lab, wanted):
        return False
    # Ansible forgets the restarts that it owes if it ends before them, and finds the configuration unchanged then.
    if lab.paths.deploying.exists():
        durable.write(lab.paths.deployment, json.dumps(variables | {"ntier_restart": True}, indent=1))
    else:
        durable.write(lab.paths.deploying, wanted)
    durable.remove(lab.paths.in_force)
    if spec.system.definition.deploys:
        names, writes = playbooks(lab, spec), spec.restores and spec.system.definition.verify.writes
        playbook(lab, spec, *(names[:-1] if writes else names))
        lab.nodes.connect()
        if writes:
            verify_by_writing(lab, spec, names[-1], wanted)
    else:
        lab.nodes.connect()
        existing.bring(lab, spec)
        existing.verify(lab, variables["ntier_verify"])
    durable.write(lab.paths.in_force, json.dumps({"digest": wanted, "deployed_s": lab.runner.now()}))
    durable.write(lab.paths.deployment, json.dumps(variables, indent=1))
    durable.remove(lab.paths.deploying)
    return True


def verify_by_writing(lab: Lab, spec: Spec, name: str, digest: str) -> None:
    """Verifies by a playbook that changes the data, and puts them back. If some of these nodes stay and others join
    them, the data of all are then as they were loaded. `digest`: of the deployment."""
    keep_loaded(lab, spec, digest)
    playbook(lab, spec, name)
    restore(lab, spec, LOADED)


def keep_loaded(lab: Lab, spec: Spec, digest: str) -> None:
    """Keeps the data as they were loaded, and notes that they may change from now on."""
    keep(lab, spec, LOADED, digest)
    holders = lab.nodes.tier(spec.data_tier) if spec.data_tier else []
    durable.write(lab.paths.written, "\n".join([str(lab.paths.raw / spec.sweep), *(n.name for n in holders)]))


def playbooks(lab: Lab, spec: Spec) -> list[str]:
    """What deploys and verifies the system: names of `ansible/playbooks`, or a path of the system's own."""
    if not spec.system.definition.deploys:
        return []
    verify = spec.system.definition.verify
    own = [str(spec.system.path(verify.playbook))] if verify.playbook else []
    return [*lab.target.playbooks, *(["verify_requests"] if verify.requests else []), *own]


def playbook(lab: Lab, spec: Spec, *names: str, check: bool = False) -> None:
    """Runs playbooks on the nodes, with progress on the screen. Raises WorkError."""
    began = lab.runner.monotonic()
    roles = spec.system.folder / "roles"
    tasks = play(
        lab.runner, lab.paths, names, lab.screen.step, roles=roles, check=check,
        on_failure=lambda failure: lab.screen.warn(f"{failure}; the other nodes end what they do"),
    )  # fmt: skip
    lab.screen.say(f"{Path(names[0]).stem}: {counted(tasks, 'step')} in {lab.runner.monotonic() - began:.0f} s")


def warm_up(lab: Lab, spec: Spec) -> dict[str, Any]:
    """Drives the system, without limits, in rounds of its warm_up_s until its JVMs have compiled, unless these very
    processes have been warmed up with this workload, as long as these runs need. Users who walk a mix leave situations
    where those of the trials start (workloads/README.md).

    Returns what was done ({seconds, interactions, situations, t_s}); it goes into the manifest of each trial."""
    record = in_force(lab)
    serving = identity(lab)
    before = record.get("warm", {})
    same = record.get("warm_identity") == serving and before.get("mix") == spec.mix.name
    least, most = warm_rounds(spec)
    if same and most <= before.get("most_rounds", 0) and _left_situations(lab, spec):
        return before
    if spec.restores:
        restore(lab, spec, LOADED)
    began, rounds, seconds = lab.runner.now(), 0, spec.system.definition.warm_up_s
    if not seconds:
        if spec.restores:
            keep(lab, spec, WARM, f"{began:.0f}")
        return {}
    needed = 1 if spec.system.definition.load.model is LoadModel.WORK else WARM_LEAST
    spent, jit, settled, served = jit_cpu_s(lab, spec), {}, False, 0
    while True:
        rounds += 1
        why = f", {max(jit, key=jit.get)} still compiles" if jit and not settled else ""
        lab.screen.say(f"warm-up: {seconds:g} s without limits{why}")
        completed, left = drive(lab, spec, seconds, rounds)
        served += completed
        so_far, spent = spent, jit_cpu_s(lab, spec)
        jit = {name: round(max(0.0, s - so_far[name]) / seconds, 4) for name, s in spent.items()}
        settled = all(jit[n.name] <= SETTLED_JIT * (n.cpu_cores or 1.0) for n in compiling(lab, spec))
        if rounds == most or (rounds >= least and served >= needed and settled):
            break
    if served < needed:
        raise (TooFew if served else WorkError)(
            f"warm-up: only {counted(served, 'interaction')} served in {seconds * rounds:g} s, at least {needed} needed"
            f"; if the system is that slow, give load.warm_up_s in {spec.system.folder / SYSTEM_FILE} more seconds "
            f"(now {seconds:g}), or 0 for no warm-up"
        )
    share_situations(lab, spec)
    warm = {
        "t_s": began,
        "seconds": seconds * rounds,
        "most_rounds": most,
        "jit_cores": jit,
        "mix": spec.mix.name,
        "interactions": served,
        "situations": left,
    }
    if spec.restores:
        keep(lab, spec, WARM, f"{began:.0f}")
        serving = identity(lab)
    durable.write(lab.paths.in_force, json.dumps(record | {"warm": warm, "warm_identity": serving}))
    return warm


def compiling(lab: Lab, spec: Spec) -> list[Node]:
    """Nodes whose servers may be JVMs."""
    return [n for tier in spec.jvm_tiers for n in lab.nodes.tier(tier)]


def jit_cpu_s(lab: Lab, spec: Spec) -> dict[str, float]:
    """CPU seconds that the compilers of each node's JVMs have used so far; 0 where there is none. Raises WorkError."""

    def of(node: Node) -> tuple[str, float]:
        said = lab.nodes.call(node, JIT_CPU).out.strip()
        try:
            return node.name, float(said)
        except ValueError:
            raise WorkError(f"{node.name}: CPU seconds of its compilers: {said!r} is not a number") from None

    return dict(lab.runner.parallel(of, compiling(lab, spec)))


def _left_situations(lab: Lab, spec: Spec) -> bool:
    """Whether the clients still have the situations, if the workload has any; a client that was started anew has
    none."""
    if spec.mix.file is None:
        return True
    test = f"test -s {situations_file(spec.mix)} && echo yes"
    return all(lab.nodes.call(c, test, check=False).out.strip() == "yes" for c in lab.nodes.clients)


def share_situations(lab: Lab, spec: Spec) -> None:
    """Gives every client the situations of all, so that a user starts in the same one whatever client it is on."""
    clients, file = lab.nodes.clients, situations_file(spec.mix)
    if len(clients) < 2 or spec.mix.file is None:
        return
    texts = [
        t.splitlines(keepends=True)
        for t in lab.runner.parallel(lambda c: lab.nodes.call(c, f"cat {file}").out, clients)
    ]
    joined = "".join([*texts[0][:1], *(line for text in texts for line in text[1:])])
    lab.runner.parallel(lambda c: lab.nodes.call(c, f"cat > {file}.new && mv {file}.new {file}", input=joined), clients)


def drive(lab: Lab, spec: Spec, seconds: float, round_: int) -> tuple[int, int]:
    """Load outside of trials, for `seconds`; its situations join those of earlier rounds. Returns the interactions
    served and the number of situations so far. Raises WorkError if a client fails."""
    runner = lab.runner
    users = max(WARM_USERS_PER_CORE * lab.target.cores(lab.nodes.all), len(lab.nodes.clients))
    phases = Phases("warm", 2.0, seconds, 0.0)
    directory = f"{REMOTE}/warm-up"
    reset(lab)
    seed = spec.seed + round_  # other walks than in the rounds before
    run, driver = of_system.run_and_driver(
        lab, spec, directory, users, phases, seed, think_time_s=WARM_THINK_S, keep=SITUATIONS
    )
    clean = f"rm -rf {directory}"
    new, kept_in = f"{directory}/situations.csv", situations_file(spec.mix)
    join = f"mv {new} {kept_in}" if round_ == 1 else f"tail -n +2 {new} >> {kept_in}"
    keep = f"{join} && tail -n +2 {kept_in} | wc -l"
    runner.parallel(lambda c: lab.nodes.call(c, clean), lab.nodes.clients)
    generator = Generator(lab.nodes, lab.target.guard, run, driver, lab.paths.logs, patience_s=MAX_BOOT_S)
    try:
        generator.start()
        generator.watch()
        end, completed = generator.release() + phases.total_s, 0
        while runner.now() < end:
            runner.sleep(min(1.0, max(0.01, end - runner.now())))
            completed = generator.poll().completed
            lab.screen.step(f"warm-up: {completed} interactions")
    finally:
        with runner.stop.deferred():
            try:
                generator.wait(5.0)
            finally:
                generator.end()
            kept = runner.parallel(lambda c: lab.nodes.call(c, keep, check=False).out.strip(), lab.nodes.clients)
            runner.parallel(lambda c: lab.nodes.call(c, clean, check=False), lab.nodes.clients)
    left = sum(int(n) for n in kept if n.isdigit())
    return completed, left
