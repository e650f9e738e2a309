"""`ntier`: plans, runs and records experiments. Commands are thin; a heavy import is inside the one that needs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from ntier_harness.errors import Interrupted, RequestError, WorkError, unknown
from ntier_harness.targets import NAMES

if TYPE_CHECKING:
    from ntier_harness.campaign_spec import Campaign
    from ntier_harness.lab import Lab
    from ntier_harness.spec import Spec

EPILOG = """\b
Examples:
  ntier doctor                                  what this machine has and lacks
  ntier plan  --topo 1/1/1/1M                   what a sweep would do; touches nothing
  ntier sweep --topo 1/1/1/1M                   the main job: from nodes to a report
  ntier sweep --topo 1/2/1/2M --users 1000:9000:2000 --phases standard --reps 3
  ntier sweep --topo 1/1/1/1M --users 1000,2000 --above 8000    does it come back when users leave?
  ntier campaign --spec workloads/campaigns/paper-mesh.yaml
  ntier down                                    destroys the nodes; results stay
"""

SPEC_OPTIONS = [
    click.option(
        "--system", metavar="NAME", help="System to deploy and drive; `ntier systems` lists all, the default first."
    ),
    click.option(
        "--topo",
        metavar="N/N/...",
        help="Nodes of each tier, in the system's notation: 1/1/1/1M is one node each, with MySQL.",
    ),
    click.option(
        "--users", metavar="LIST", help="Nominal users: first:last:step or a list with commas. Default 1000:13000:1000."
    ),
    click.option(
        "--factor",
        metavar="NAME=LIST",
        help="Variable that changes from trial to trial instead of the users: sleep_s=0.1,0.5.",
    ),
    click.option(
        "--above",
        metavar="N",
        help="Also measures each load below N users after N users were there during the ramp-up and left.",
    ),
    click.option("--mix", metavar="NAME", help="What the users do: a workload of the system."),
    click.option(
        "--phases",
        metavar="NAME|a/b/c",
        help="Ramp-up/run/ramp-down: smoke, short, standard, paper, or seconds. Default short.",
    ),
    click.option("--reps", metavar="N", help="Repetitions of each load. Default 1."),
    click.option(
        "--middleware",
        metavar="NAME",
        help="Middleware program. For other systems: choice of the variant that is part of the sweep's name.",
    ),
    click.option(
        "--variant",
        metavar="NAME=CHOICE",
        multiple=True,
        help="Program for a part of the system that offers several. May be repeated.",
    ),
    click.option(
        "--target",
        metavar="NAME",
        help="Where nodes run: local (containers here, default), hosts, or hcloud, openstack (rented machines).",
    ),
    click.option("--hosts", metavar="FILE", help="Machines of target hosts (docs/targets.md)."),
    click.option(
        "--machines",
        metavar="FILE",
        help="File of the machines to rent, with prices; default: machines.json of the target (docs/targets.md).",
    ),
    click.option(
        "--budget",
        metavar="5EUR",
        help="Most that rented machines may cost; before that the sweep ends and gives them back.",
    ),
    click.option(
        "--scale", metavar="auto|S", help="Share of a core that a normal node gets; the users are multiplied by it too."
    ),
    click.option(
        "--search",
        metavar="NAME",
        help="Loads to run: grid (all of --users) or capacity (only those that the maximum needs).",
    ),
    click.option(
        "--precision",
        metavar="P",
        help="Interval that --search capacity aims at (0.05 is +-5 %), with up to six loads instead of four.",
    ),
    click.option(
        "--minutes",
        metavar="M",
        help="Time for --search capacity, which then runs the loads and repetitions that fit.",
    ),
    click.option("--seed", metavar="N", help="Seed of all random choices. Default 1."),
    click.option(
        "--name",
        metavar="NAME",
        help="Last part of the sweep's name. Default: the options that differ from their defaults.",
    ),
    click.option("--clients", metavar="N", help="Load generators that share the users, 1 to 16. Default 1."),
    click.option(
        "--trace",
        metavar="N",
        help="Follow one interaction of N through all tiers (docs/decisions/tracing.md). Default: none.",
    ),
    click.option("--data", metavar="PROFILE", help="Data profile of the system."),
    click.option(
        "--set",
        "set",
        metavar="NAME=VALUE",
        multiple=True,
        help="A soft resource of the system (`ntier plan` lists them). May be repeated.",
    ),
]
RESULTS = click.option("--results", default="results", show_default=True, metavar="DIR", help="Folder of results.")
TARGET = click.option(
    "--target", default=NAMES[0], show_default=True, metavar="NAME", help=f"Target: {', '.join(NAMES)}."
)
ATTEMPTS = click.option(
    "--attempts",
    default=3,
    show_default=True,
    type=click.IntRange(1, 20),
    help="Most attempts at a trial that fails or is invalid.",
)
NEEDS = click.option(
    "--needs", is_flag=True, hidden=True, help="Checks the request, prints the images that it needs, and ends."
)
METRICS = click.option(
    "--metrics",
    metavar="[ADDRESS:]PORT",
    help="Serve the progress as metrics for Prometheus on this port (of 127.0.0.1 if no address is given).",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


def spec_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed([*SPEC_OPTIONS, RESULTS, JSON]):
        command = option(command)
    return command


class Commands(click.Group):
    """Names the nearest command on a typo."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(package_name="ntier-harness", prog_name="ntier")
def cli() -> None:
    """Finds the bottleneck of a multi-tier system by experiment: provisions nodes, drives them with users, measures."""


def read_spec(options: dict[str, Any]) -> Spec:
    import os

    from ntier_harness.paths import Paths
    from ntier_harness.plan import within
    from ntier_harness.request import make_spec

    spec = make_spec(options, Paths.find().root, os.cpu_count() or 1)
    return within(spec, options.get("minutes"), spec.reps if options.get("reps") else None)


def read_campaign(file: str) -> Campaign:
    import os

    from ntier_harness import campaign_spec
    from ntier_harness.paths import Paths

    return campaign_spec.parse(campaign_spec.read(file), file, Paths.find().root, os.cpu_count() or 1)


def make_lab(
    results: str = "results",
    *,
    as_json: bool = False,
    target: str | None = None,
    hosts: str | None = None,
    machines: str | None = None,
    budget: str | None = None,
) -> Lab:
    """`hosts`: inventory file of the target of that name; `machines`, `budget`: of a target that rents. Raises
    RequestError for an unknown target."""
    import shlex

    from ntier_harness.lab import Lab
    from ntier_harness.paths import Paths
    from ntier_harness.runner import Runner
    from ntier_harness.screen import make_screen
    from ntier_harness.targets import make_target

    if not results:
        raise RequestError("results: is empty; give a folder")
    target = target or NAMES[0]
    runner, paths = Runner(), Paths.find(results, target)
    place = make_target(target, runner, paths, hosts, machines, budget)
    screen = make_screen(as_json=as_json)
    runner.stop.on_first = lambda: screen.say("stopping: collecting what there is (a second Ctrl-C stops at once)")
    runner.stop.install()
    command = shlex.join(["ntier", *sys.argv[1:]])
    return Lab(runner, paths, place, screen, command)


def announce_needs(lab: Lab, specs: Iterable[Spec]) -> None:
    """For set-up, which follows once a request was accepted: prints the names of the images, with commas. Raises
    RequestError if another ntier is at work here, which building images would disturb."""
    from ntier_harness import node_commands

    if other := node_commands.at_work(lab):
        raise RequestError(f"another ntier is at work: {other}; wait for it or stop it")
    if images := dict.fromkeys(name for spec in specs for name in spec.images):
        click.echo(",".join(images))


def lab_of(results: str, as_json: bool, options: dict[str, Any]) -> Lab:
    """The laboratory on the target that the options of a sweep name."""
    chosen = {k: options[k] for k in ("target", "hosts", "machines", "budget")}
    return make_lab(results, as_json=as_json, **chosen)


@cli.command()
@spec_options
@ATTEMPTS
@METRICS
@NEEDS
def sweep(as_json: bool, results: str, attempts: int, metrics: str | None, needs: bool, **options: Any) -> None:
    """Runs all steps from nodes to a report. Goes on with a sweep that was interrupted."""
    from ntier_harness import live, plan_view, preflight, sweep

    place = live.parse(metrics)
    spec = read_spec(options)
    lab = lab_of(results, as_json, options)
    with live.served(lab.live, place):
        preflight.check(lab, spec, attempts)
        preflight.check_programs(lab, spec)
        if needs:
            lab.target.require_privileges()
            announce_needs(lab, [spec])
            return
        plan_view.before_work(lab, spec, attempts)
        sys.exit(sweep.run(lab, spec, attempts, options))


@cli.command()
@spec_options
@ATTEMPTS
@click.option("--spec", "file", metavar="FILE", help="Plan this campaign instead of a sweep.")
@click.pass_context
def plan(ctx: click.Context, as_json: bool, results: str, attempts: int, file: str | None, **options: Any) -> None:
    """Shows what a sweep would do; touches nothing. Prints nodes, trials, time, disk and memory, with --spec those of a
    campaign. Refuses the same requests as a sweep; that a program has yet to be made is a warning here."""
    if file:
        plan_campaign(ctx, file, results, as_json=as_json)
        return
    spec = read_spec(options)
    lab = lab_of(results, as_json, options)
    from ntier_harness import foresight, plan_view, preflight

    preflight.check(lab, spec, attempts)
    data = plan_view.plan_data(lab, spec, attempts) | {"foreseen": foresight.foreseen(lab, spec)}
    click.echo(json.dumps(data, indent=1) if as_json else plan_view.plan_text(data))


def plan_campaign(ctx: click.Context, file: str, results: str, *, as_json: bool) -> None:
    from ntier_harness import campaign, campaign_ledger

    beside = [k for k in ctx.params if k not in ("file", "results", "as_json")]
    given = [f"--{k}" for k in beside if ctx.get_parameter_source(k) is not click.core.ParameterSource.DEFAULT]
    if given:
        raise RequestError(f"spec: {', '.join(given)} cannot be given with --spec; put them into its file")
    planned = read_campaign(file)
    lab = make_lab(results, as_json=as_json, target=planned.target, hosts=planned.hosts)
    campaign.check(lab, planned)
    data = campaign_ledger.data(lab, planned)
    click.echo(json.dumps(data, indent=1) if as_json else campaign_ledger.text(data, order=True))


@cli.command()
@spec_options
@NEEDS
def up(as_json: bool, results: str, needs: bool, **options: Any) -> None:
    """Provisions the nodes."""
    from ntier_harness import node_commands

    spec = read_spec(options)
    lab = lab_of(results, as_json, options)
    if needs:
        node_commands.ready_to_provision(lab, spec)
        announce_needs(lab, [spec])
        return
    node_commands.up(lab, spec, options)


@cli.command()
@spec_options
@click.option("--check", is_flag=True, help="Ansible's check mode: says what would change, changes nothing.")
@NEEDS
def deploy(as_json: bool, results: str, check: bool, needs: bool, **options: Any) -> None:
    """Installs, configures, starts and verifies the system. It does so on the nodes that are up. Without options it
    takes those of the last `ntier up` or sweep."""
    from ntier_harness import node_commands

    lab = lab_of(results, as_json, options)
    spec = read_spec(node_commands.noted(lab) | {k: v for k, v in options.items() if v})
    if needs:
        node_commands.ready_to_deploy(lab, spec)
        announce_needs(lab, [spec])
        return
    node_commands.deploy_only(lab, spec, check=check)


@cli.command()
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


@cli.command()
@TARGET
def down(target: str) -> None:
    """Destroys the nodes. On target hosts the machines stay, and the changes to them are undone; rented machines are
    given back, and the provider is asked whether anything is left. Results stay."""
    from ntier_harness import node_commands

    node_commands.down(make_lab(target=target))


@cli.command()
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


@cli.command()
@TARGET
@RESULTS
@JSON
def status(target: str, results: str, as_json: bool) -> None:
    """Shows what runs, and how far the sweeps are."""
    from ntier_harness import node_commands

    node_commands.status(make_lab(results, as_json=as_json, target=target), as_json=as_json)


@cli.command()
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


@cli.command()
@TARGET
@click.argument("node")
@click.argument("command", nargs=-1)
def shell(target: str, node: str, command: tuple[str, ...]) -> None:
    """Opens a shell on a node: ntier shell db1. With COMMAND, runs that command there instead."""
    from ntier_harness import node_commands

    node_commands.shell(make_lab(target=target), node, list(command))


@cli.command()
@TARGET
@click.argument("node")
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines.")
def logs(target: str, node: str, follow: bool) -> None:
    """Prints the journal of a node: ntier logs app1 -f."""
    from ntier_harness import node_commands

    journal = ["journalctl", "--no-pager", "-n", "200", *(["-f"] if follow else [])]
    node_commands.shell(make_lab(target=target), node, journal)


@cli.command(short_help="Runs several sweeps as one; goes on where it stopped.")
@click.option("--spec", "file", metavar="FILE", required=True, help="YAML: topologies, mixes, middlewares, users, ...")
@click.option("--machines", metavar="FILE", help="File of the machines to rent; default: that of the target.")
@click.option("--budget", metavar="5EUR", help="Most that rented machines may cost for the whole campaign.")
@METRICS
@RESULTS
@JSON
@NEEDS
def campaign(
    file: str,
    machines: str | None,
    budget: str | None,
    metrics: str | None,
    results: str,
    as_json: bool,
    needs: bool,
) -> None:
    """Runs several sweeps as one: topologies x mixes x middlewares x repetitions. Goes on where it stopped."""
    from ntier_harness import campaign, live, preflight

    place = live.parse(metrics)
    planned = read_campaign(file)
    lab = make_lab(
        results, as_json=as_json, target=planned.target, hosts=planned.hosts, machines=machines, budget=budget
    )
    with live.served(lab.live, place):
        for spec in planned.sweeps:
            preflight.check_programs(lab, spec)
        if needs:
            campaign.check(lab, planned)
            lab.target.require_privileges()
            announce_needs(lab, planned.sweeps)
            return
        sys.exit(campaign.run(lab, planned, file))


@cli.group()
def driver() -> None:
    """Programs that make the load (docs/drivers.md)."""


@driver.command("check", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--model", default="closed", show_default=True, type=click.Choice(["closed", "open", "work"]))
@click.option("--config", metavar="FILE", help="JSON with further keys for driver.json, for example `jmeter`.")
@click.option("--set", "values", metavar="NAME=VALUE", multiple=True, help="A parameter of the load. May be repeated.")
@JSON
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def driver_check(
    model: str, config: str | None, values: tuple[str, ...], as_json: bool, command: tuple[str, ...]
) -> None:
    """Says which rules of the drivers' contract COMMAND breaks. Runs it against a small web server on this machine, in
    less than a minute. Exit code 1 if it breaks a rule."""
    from ntier_harness.drivers import check
    from ntier_harness.paths import Paths

    settings = check.read_settings(config, values, list(command))
    report = (lambda _: None) if as_json else (lambda finding: click.echo(check.text(finding)))
    findings = check.check(list(command), settings, model, Paths.find().workloads / "bin/run-driver", report)
    if as_json:
        click.echo(json.dumps([finding.__dict__ for finding in findings], indent=1))
    sys.exit(1 if any(finding.kept is False for finding in findings) else 0)


@cli.group(cls=Commands, invoke_without_command=True)
@JSON
@click.pass_context
def systems(ctx: click.Context, as_json: bool) -> None:
    """Lists the systems that can be deployed and driven. Each is a folder with a system.yaml in systems/; `check DIR`
    checks one."""
    from ntier_harness.paths import Paths
    from ntier_harness.systems import find, names
    from ntier_harness.systems.listing import text

    if ctx.invoked_subcommand:
        return
    root = Paths.find().root
    known = sorted((find(root, name) for name in names(root)), key=lambda s: not s.is_default)
    if as_json:
        click.echo(json.dumps([s.definition.model_dump(mode="json", by_alias=True) for s in known], indent=1))
    else:
        click.echo("\n".join(map(text, known)))


@systems.command()
@click.argument("folder", metavar="DIR")
def check(folder: str) -> None:
    """Lists what is wrong with DIR/system.yaml, one line each. Exit code 2 if there is anything."""
    from pathlib import Path

    from ntier_harness.paths import Paths
    from ntier_harness.systems.reading import examine

    definition, problems = examine(Path(folder), Paths.find().root / "ansible" / "roles")
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    if problems or definition is None:
        sys.exit(2)
    click.echo(
        f"{definition.name}: {len(definition.tiers)} tiers, {len(definition.settings)} settings; nothing is wrong"
    )


@systems.command()
def schema() -> None:
    """Prints the JSON Schema of system.yaml. The same is in systems/system.schema.json."""
    from ntier_harness.systems.definition import schema

    click.echo(json.dumps(schema(), indent=1))


def main() -> None:
    """Entry point: errors become one line and the promised exit code."""
    from ntier_analysis.errors import one_line

    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(0)
    except click.UsageError as error:
        click.echo(f"error: {error.format_message()}", err=True)
        sys.exit(2)
    except RequestError as error:
        for said in error.args:
            click.echo(f"error: {one_line(said)}", err=True)
        sys.exit(2)
    except WorkError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except (Interrupted, KeyboardInterrupt, click.Abort):
        click.echo("interrupted; the same command goes on where it stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
