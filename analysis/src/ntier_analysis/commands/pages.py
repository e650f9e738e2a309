"""Reports, figures and tables of what was measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.commands.options import NO_SWEEP, STORE, AsJson, Store, Sweeps
from ntier_analysis.errors import DataError

app = typer.Typer(rich_markup_mode=None)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("ntier-demo"),
    all_: Annotated[bool, typer.Option("--all", help="Reports of all three sweeps.")] = False,
) -> None:
    """Writes the report of the measured sweep in the package.

    Needs no root, no nodes, no network."""
    from ntier_analysis.demo.command import run

    run(out, everything=all_)


@app.command()
def report(
    sweeps: Sweeps = None,
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("results/reports"),
    force: Annotated[bool, typer.Option("--force", help="Also write reports that did not change.")] = False,
    json: AsJson = False,
) -> None:
    """Writes the report of each sweep and prints a summary.

    HTML, Markdown, JSON, figures and tables.

    A report whose data and program did not change is left as it is."""
    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.store.tables import sweeps as stored

    check_folder(out, "--out")
    names = stored(store)
    unknown = [s for s in sweeps or [] if s not in names]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(names) or 'none'}")
    from ntier_analysis.report import kept_report, summary, write_report

    summaries = []
    for number, name in enumerate(sweeps or names, start=1):
        page = None if force else kept_report(store, name, out)
        state = "..." if page is None else "unchanged"
        print(f"{name} ({number} of {len(sweeps or names)}) {state}", file=sys.stderr)
        summaries.append(summary.read(page or write_report(store, name, out)))
        if not json:
            print(summary.text(summaries[-1]) + "\n" * (number < len(sweeps or names)), flush=True)
    if json:
        print(summary.to_json({"sweeps": summaries}))
    elif not names:
        print(NO_SWEEP)


@app.command()
def figure(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    kind: Annotated[
        str, typer.Option(help="density-surface, density-map, course, timeline, load-throughput, percentiles or tiers.")
    ],
    out: Annotated[Path, typer.Option(help="File to write: *.png, *.pdf or *.svg.")],
    node: Annotated[
        list[str] | None, typer.Option(help="Node; may be repeated with the kinds course and load-throughput.")
    ] = None,
    resource: Annotated[str, typer.Option(help="With densities: cpu, disk, network, pool, ...")] = "cpu",
    item: Annotated[str | None, typer.Option(help="With densities: the device, interface or pool.")] = None,
    trial: Annotated[str, typer.Option(help="Trial to draw; default: the one nearest to the knee.")] = "",
    from_: Annotated[float | None, typer.Option("--from", min=0, help="With course: first second of the run.")] = None,
    to: Annotated[float | None, typer.Option(min=0, help="With course: last second of the run.")] = None,
    store: Store = STORE,
) -> None:
    """Draws one figure of a sweep.

    Any resource of any node, any trial, any part of its run.

    ntier-analysis figure SWEEP --kind density-surface --node db1 --resource disk --out disk.png"""
    from ntier_analysis.ondemand.command import Request, run

    request = Request(kind, tuple(node or ()), resource, item, trial, (from_, to))
    print(run(store, sweep, request, out))


@app.command()
def slow(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    trial: Annotated[str, typer.Option(help="Trial; default: the one nearest to the knee.")] = "",
    top: Annotated[int, typer.Option(min=1, max=1000, help="Number of interactions.")] = 10,
    raw: Annotated[
        str | None,
        typer.Option(help="Folder of the raw results, or a URL of fsspec.", show_default="raw, beside the store"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also draw them: *.png, *.pdf or *.svg.")] = None,
    traced: Annotated[bool, typer.Option("--traced", help="Only traced interactions, by tier.")] = False,
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """Lists the slowest interactions of a trial.

    Shows the parts of their time, and which CPUs were full meanwhile."""
    from ntier_analysis.ondemand.slow import run
    from ntier_analysis.places import opened_raw

    source = None if raw is None else opened_raw(raw, sweep)
    print(run(store, sweep, trial, top, source, out, json=json, traced=traced))
