"""Options that several commands share, and a group that knows typing errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ntier_harness.errors import unknown
from ntier_harness.targets import NAMES

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
        help="Interval that --search capacity aims at (0.05 is +-5 %), with up to six loads, not only four.",
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
