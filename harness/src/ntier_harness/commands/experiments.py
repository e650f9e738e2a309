"""Commands that run experiments, or say what these would do."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ntier_harness.commands.begin import announce_needs, lab_of, make_lab, read_campaign, read_spec
from ntier_harness.commands.options import ATTEMPTS, JSON, METRICS, NEEDS, RESULTS, spec_options
from ntier_harness.errors import RequestError


@click.command()
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


@click.command()
@spec_options
@ATTEMPTS
@click.option("--spec", "file", metavar="FILE", help="Plan this campaign instead of a sweep.")
@click.pass_context
def plan(ctx: click.Context, as_json: bool, results: str, attempts: int, file: str | None, **options: Any) -> None:
    """Shows what a sweep would do; touches nothing. Prints nodes, trials, time, disk and memory, with --spec those of a
    campaign. Refuses the same requests as a sweep; that a program has yet to be made is a warning here."""
    if file:
        terms = {k: options[k] for k in ("machines", "budget")}
        plan_campaign(ctx, file, results, as_json=as_json, **terms)
        return
    spec = read_spec(options)
    lab = lab_of(results, as_json, options)
    from ntier_harness import foresight, plan_view, preflight

    preflight.check(lab, spec, attempts)
    data = plan_view.plan_data(lab, spec, attempts) | {"foreseen": foresight.foreseen(lab, spec)}
    click.echo(json.dumps(data, indent=1) if as_json else plan_view.plan_text(data))


def plan_campaign(
    ctx: click.Context, file: str, results: str, *, as_json: bool, machines: str | None, budget: str | None
) -> None:
    from ntier_harness import campaign, campaign_ledger
    from ntier_harness.campaign_spec import CROSSED, KEYS

    beside = [k for k in ctx.params if k not in ("file", "results", "as_json", "machines", "budget")]
    given = [k for k in beside if ctx.get_parameter_source(k) is not click.core.ParameterSource.DEFAULT]
    keys = {v: k for k, v in CROSSED.items()} | {k: k for k in KEYS}
    if strange := [f"--{k}" for k in given if k not in keys]:
        raise RequestError(f"spec: {', '.join(strange)} cannot be given with --spec: not for campaigns")
    if given:
        options, names = ", ".join(f"--{k}" for k in given), ", ".join(f"{keys[k]}:" for k in given)
        raise RequestError(f"spec: {options} cannot be given with --spec; its file may say {names}")
    planned = read_campaign(file)
    lab = make_lab(
        results, as_json=as_json, target=planned.target, hosts=planned.hosts, machines=machines, budget=budget
    )
    campaign.check(lab, planned)
    data = campaign_ledger.data(lab, planned)
    click.echo(json.dumps(data, indent=1) if as_json else campaign_ledger.text(data, order=True))


@click.command(short_help="Runs several sweeps as one; goes on where it stopped.")
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
