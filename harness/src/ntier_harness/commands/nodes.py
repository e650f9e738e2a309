"""Commands about the nodes: from renting and installing them to giving them back."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ntier_harness.commands.begin import announce_needs, lab_of, make_lab, read_spec
from ntier_harness.commands.options import JSON, NEEDS, RESULTS, TARGET, spec_options
from ntier_harness.errors import RequestError


def refuse_budget(options: dict[str, Any], command: str) -> None:
    """Raises RequestError for a budget that nothing would keep once the command has ended."""
    if options.get("budget"):
        raise RequestError(f"budget: ntier {command} cannot keep one; sweep, campaign and images do, so give it there")


@click.command()
@spec_options
@NEEDS
def up(as_json: bool, results: str, needs: bool, **options: Any) -> None:
    """Provisions the nodes."""
    from ntier_harness import node_commands

    refuse_budget(options, "up")
    spec = read_spec(options)
    lab = lab_of(results, as_json, options)
    if needs:
        node_commands.ready_to_provision(lab, spec)
        announce_needs(lab, [spec])
        return
    node_commands.up(lab, spec, options)


@click.command()
@spec_options
@click.option("--check", is_flag=True, help="Ansible's check mode: says what would change, changes nothing.")
@NEEDS
def deploy(as_json: bool, results: str, check: bool, needs: bool, **options: Any) -> None:
    """Installs, configures, starts and verifies the system. It does so on the nodes that are up. Without options it
    takes those of the last `ntier up` or sweep."""
    from ntier_harness import node_commands

    refuse_budget(options, "deploy")
    lab = lab_of(results, as_json, options)
    spec = read_spec(node_commands.noted(lab) | {k: v for k, v in options.items() if v})
    if needs:
        node_commands.ready_to_deploy(lab, spec)
        announce_needs(lab, [spec])
        return
    node_commands.deploy_only(lab, spec, check=check)


@click.command()
@spec_options
@click.option("--remove", is_flag=True, help="Remove all snapshots of ours instead; takes only --target.")
def images(as_json: bool, results: str, remove: bool, **options: Any) -> None:
    """Makes snapshots, so that rented machines start sooner. A machine for each role of the topology is rented, the
    role is installed, and the machine is given back. Later sweeps make their machines from snapshots whose
    installation is the same as theirs; a snapshot costs money as long as it is kept."""
    from ntier_harness import images

    lab = lab_of(results, as_json, options)
    if not remove:
        images.make(lab, read_spec(options))
        return
    given = [f"--{name}" for name, value in options.items() if value and name != "target"]
    if given:
        raise RequestError(f"remove: takes no {', '.join(given)}; all snapshots of ours are removed")
    images.remove(lab)


@click.command()
@TARGET
def down(target: str) -> None:
    """Destroys the nodes. On target hosts the machines stay, and the changes to them are undone; rented machines are
    given back, and the provider is asked whether anything is left. Results stay."""
    from ntier_harness import node_commands

    node_commands.down(make_lab(target=target))


@click.command()
@click.option("--target", default="hcloud", show_default=True, metavar="NAME", help="Target that rents machines.")
@click.option("--remove", is_flag=True, help="Remove everything that no deployment uses or that has expired.")
@click.option("--owner", metavar="OWNER", help="With --remove: also everything with this owner's label.")
@JSON
def leftovers(target: str, remove: bool, owner: str | None, as_json: bool) -> None:
    """Lists what this project has in the provider's account. These are machines, addresses, disks, networks and keys.
    Exit code 1 if something is left over that no deployment uses. Snapshots are listed apart, with their price; ntier
    images --remove deletes them."""
    from ntier_harness import node_commands

    sys.exit(node_commands.leftovers(make_lab(target=target), remove=remove, owner=owner, as_json=as_json))


@click.command()
@TARGET
@RESULTS
@JSON
def status(target: str, results: str, as_json: bool) -> None:
    """Shows what runs, and how far the sweeps are."""
    from ntier_harness import node_commands

    node_commands.status(make_lab(results, as_json=as_json, target=target), as_json=as_json)


@click.command()
@TARGET
@click.option("--machines", metavar="FILE", help="File of the machines to rent; default: that of the target.")
@JSON
def doctor(target: str, machines: str | None, as_json: bool) -> None:
    """Lists what this machine has and lacks. Each fault comes with the command that mends it. Exit code 1 if something
    needed is missing."""
    from ntier_harness import doctor

    findings = doctor.examine(make_lab(as_json=as_json, target=target, machines=machines))
    click.echo(json.dumps([f.__dict__ for f in findings], indent=1) if as_json else doctor.text(findings))
    sys.exit(1 if any(f.level == "fail" for f in findings) else 0)


@click.command(context_settings={"allow_interspersed_args": False})
@TARGET
@click.argument("node")
@click.argument("command", nargs=-1)
def shell(target: str, node: str, command: tuple[str, ...]) -> None:
    """Opens a shell on a node: ntier shell db1. With COMMAND, runs that command there instead: what follows the node is
    all its own, as in ntier shell db1 ls -l."""
    from ntier_harness import node_commands

    after = command[1:] if command[:1] == ("--",) else command
    node_commands.shell(make_lab(target=target), node, list(after))


@click.command()
@TARGET
@click.argument("node")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines.")
def logs(target: str, node: str, follow: bool) -> None:
    """Prints the journal of a node: ntier logs app1 -f."""
    from ntier_harness import node_commands

    journal = ["journalctl", "--no-pager", "-n", "200", *(["-f"] if follow else [])]
    node_commands.shell(make_lab(target=target), node, journal)
