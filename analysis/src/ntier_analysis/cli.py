"""`ntier-analysis`: raw trials -> store -> verdict -> report."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Annotated

import typer

from ntier_analysis.commands import data, pages, topologies, verdicts
from ntier_analysis.errors import DataError, one_line, print_anything

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (data, verdicts, topologies, pages):
    app.add_typer(part.app)


def _version(asked: bool) -> None:
    if asked:
        from ntier_analysis.verdict.stored import analysis_version

        print(f"ntier-analysis {analysis_version()}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print version and digest of the verdict's rules."
        ),
    ] = False,
) -> None:
    """Finds the bottleneck of a multi-tier system from measurements."""


@app.command()
def standby() -> None:
    """Stays up and does one command after another, for programs.

    Each line of the input is a command: a JSON list of words. Each is answered with a line {code, out, err}."""
    from ntier_analysis.standby import load, serve

    load()
    serve(partial(main, alone=False))


@cache
def command() -> Callable[[list[str] | None], None]:
    """What reads the words of a command line. Making it takes 0.1 s of CPU on a slow machine; a program that stays up
    does so once."""
    return typer.main.get_command(app)


def main(words: list[str] | None = None, *, alone: bool = True) -> None:
    """Entry point: errors become one line and the promised exit code. `words`: instead of the program's arguments.
    Raises MemoryError unless `alone`: who stays up ends then."""
    if alone:
        print_anything()
    try:
        command()(words)
    except DataError as error:
        from ntier_analysis.places import as_given

        print(f"error: {one_line(DataError(as_given(error)))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # who read our output has gone
        sys.stdout = None
        sys.exit(1)
    except OSError as error:  # a full disk
        if error.errno == errno.ENOMEM and not alone:
            raise MemoryError from error
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        if not alone:
            raise
        print("error: not enough memory for these data (a limit of the shell or container?)", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
