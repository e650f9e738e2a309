"""Options that several commands have, and what they are read as."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.errors import DataError, one_line


def _opened(store: str | Path) -> Path:
    """A store, wherever it is, as a folder of this machine."""
    from ntier_analysis.places import opened

    try:
        return opened(store)
    except DataError as error:  # a ValueError, which Typer would tell of as a wrong word on the command line
        print(f"error: {one_line(error)}", file=sys.stderr)
        raise typer.Exit(2) from error


Store = Annotated[
    Path,
    typer.Option("--store", parser=_opened, metavar="DIR|URL", help="Folder of the Parquet store, or a URL of fsspec."),
]
StoreAndSweeps = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STORE] [SWEEP]...", help="Names of sweeps; before them the store, unless --store is given."
    ),
]
Anywhere = Annotated[
    str, typer.Option("--store", metavar="DIR|URL", help="Folder of the Parquet store, or a URL of fsspec.")
]
"""For commands that hand the store to other processes, which open it themselves."""
PlacedAnywhere = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR|URL",
        help="Folder of the Parquet store, or a URL of fsspec.",
        show_default="results/store",
    ),
]
"""For commands whose first argument is the store unless this option is given."""
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes that do sweeps at the same time.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="Dask instead: tcp://HOST:PORT of a scheduler, or local:N for N processes."),
]
Sweeps = Annotated[list[str] | None, typer.Argument(help="Names of sweeps; default: all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
STORE = Path("results/store")
NO_SWEEP = "the store holds no sweep"
"""Printed by commands for each sweep, where there is none."""

Mix = Annotated[str | None, typer.Option(help="Only sweeps with this mix.")]
PricesFile = Annotated[Path | None, typer.Option(help="JSON: prices per hour of the node types; default: an example.")]
Slo = Annotated[float | None, typer.Option(help="Objective of the 95th percentile, ms; default: the mix's own.")]


def placed(option: str | None, arguments: list[str] | None) -> tuple[str, list[str]]:
    """The store and the other arguments: without the option --store, the first argument is the store. Raises
    DataError for a sweep in its place."""
    if option is not None:
        return option, arguments or []
    first, *others = arguments or [str(STORE)]
    if not os.path.exists(first) and os.path.isfile(STORE / "trials" / f"{first}.parquet"):
        raise DataError(f"{first}: is a sweep of {STORE}, and no store: name the store before it, {STORE} {first}")
    return first, others
