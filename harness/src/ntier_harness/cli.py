"""`ntier`: plans, runs and records experiments. Commands are thin; a heavy import is inside the one that needs it."""

from __future__ import annotations

import sys

import click

from ntier_harness.commands import contracts, experiments, nodes
from ntier_harness.commands.options import Commands
from ntier_harness.errors import Interrupted, RequestError, WorkError

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


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.version_option(package_name="ntier-harness", prog_name="ntier")
def cli() -> None:
    """Finds the bottleneck of a multi-tier system by experiment: provisions nodes, drives them with users, measures."""


for command in (
    *(experiments.sweep, experiments.plan, experiments.campaign),
    *(nodes.up, nodes.deploy, nodes.down, nodes.status, nodes.shell, nodes.logs),
    *(nodes.doctor, nodes.images, nodes.leftovers),
    *(contracts.driver, contracts.systems),
):
    cli.add_command(command)


def main() -> None:
    """Entry point: errors become one line and the promised exit code."""
    from ntier_analysis.errors import one_line, print_anything

    print_anything()
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
