"""Commands about what users bring: drivers and systems."""

from __future__ import annotations

import json
import sys

import click

from ntier_harness.commands.options import JSON, Commands


@click.group()
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


@click.group(cls=Commands, invoke_without_command=True)
@JSON
@click.pass_context
def systems(ctx: click.Context, as_json: bool) -> None:
    """Lists the systems that can be deployed and driven. Each is a folder with a system.yaml in systems/; `check DIR`
    checks one. Exit code 2 if one is wrong; the others are listed."""
    from ntier_harness.errors import RequestError
    from ntier_harness.paths import Paths
    from ntier_harness.systems import find, names
    from ntier_harness.systems.listing import text

    if ctx.invoked_subcommand:
        return
    root, known, wrong = Paths.find().root, [], []
    for name in names(root):
        try:
            system = find(root, name)
            known.append((system, text(system)))
        except RequestError as error:
            wrong.append(error)
    known.sort(key=lambda one: not one[0].is_default)
    if as_json:
        click.echo(json.dumps([s.definition.model_dump(mode="json", by_alias=True) for s, _ in known], indent=1))
    else:
        click.echo("\n".join(said for _, said in known))
    if wrong:
        raise RequestError(*map(str, wrong))


@systems.command()
@click.argument("folder", metavar="DIR")
def check(folder: str) -> None:
    """Lists what is wrong with DIR/system.yaml and the files that it names, one line each. Exit code 2 if there is
    anything."""
    from pathlib import Path

    from ntier_harness.paths import Paths
    from ntier_harness.systems.reading import examine

    definition, problems = examine(Path(folder), Paths.find().root / "ansible" / "roles", thorough=True)
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
