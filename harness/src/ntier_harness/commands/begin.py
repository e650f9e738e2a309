"""What commands begin with: the request that is made, and the laboratory that is to meet it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ntier_harness.errors import RequestError
from ntier_harness.targets import NAMES

if TYPE_CHECKING:
    from ntier_harness.campaign_spec import Campaign
    from ntier_harness.lab import Lab
    from ntier_harness.spec import Spec


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
    if place.rents:
        runner.stop.last_words = (
            f"warning: machines that are rented by now stay, and may cost money, until: ntier down --target {target}\n"
        )
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
