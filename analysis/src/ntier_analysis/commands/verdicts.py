"""What limits a sweep, and whether what was expected of it holds."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.commands.options import (
    NO_SWEEP,
    STORE,
    AsJson,
    PlacedAnywhere,
    Store,
    StoreAndSweeps,
    Sweeps,
    placed,
)
from ntier_analysis.errors import DataError
from ntier_analysis.wording import counted

app = typer.Typer(rich_markup_mode=None)


@app.command()
def verdict(
    arguments: StoreAndSweeps = None,
    store: PlacedAnywhere = None,
    sweep: Annotated[list[str] | None, typer.Option(help="Only this sweep (may be repeated).")] = None,
    json: AsJson = False,
) -> None:
    """Says what limits each sweep, how sure that is, and why."""
    from ntier_analysis.places import opened
    from ntier_analysis.verdict.store import verdicts

    place, names = placed(store, arguments)
    judged = verdicts(opened(place), names + (sweep or []))
    if json:
        import orjson

        from ntier_analysis.verdict.tables import as_json

        document = {"sweeps": [as_json(v) for v in judged]}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    from ntier_analysis.texts import verdict_text

    print("\n\n".join(verdict_text(v) for v in judged) or NO_SWEEP)


@app.command()
def demands(sweeps: Sweeps = None, store: Store = STORE, json: AsJson = False) -> None:
    """Prints the CPU that an interaction needs on each node, in ms.

    Estimated by the utilization law over the valid loads of each sweep. Nodes whose loads tell none come first, with
    the reason."""
    import pandas as pd

    from ntier_analysis.report.data import read_sweep
    from ntier_analysis.report.tables import demands as of_sweep
    from ntier_analysis.store.tables import sweeps as stored

    parts = {name: of_sweep(read_sweep(store, name)).assign(sweep=name) for name in sweeps or stored(store)}
    frame = pd.concat(parts.values(), ignore_index=True) if parts else pd.DataFrame()
    if json:
        print(frame.to_json(orient="records", indent=1))
        return
    if not parts:
        print(NO_SWEEP)
    if not frame.empty:
        print(frame.to_string(index=False, float_format="{:.3g}".format, na_rep="-"))
    for name in (name for name, rows in parts.items() if rows.empty):
        print(f"{name}: no server node is on record")


@app.command()
def chains(sweeps: Sweeps = None, store: Store = STORE, json: AsJson = False) -> None:
    """Finds what rises and falls with each database's disk.

    Looks at queue, executed statements and CPU, second by second."""
    from ntier_analysis.verdict.moves import as_json, sentences
    from ntier_analysis.verdict.store import named, with_disks

    names = named(store, sweeps or [])
    if json:
        import orjson

        found = {name: as_json(with_disks(store, name)) for name in names}
        print(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
        return
    for name in names:
        print("\n".join(f"{name}, {text}" for text in sentences(with_disks(store, name))))
    if not names:
        print(NO_SWEEP)


@app.command()
def search(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep; it need not be in the store yet.")],
    users: Annotated[str, typer.Option(help="Nominal loads of the full grid, with commas; they bound the search.")],
    store: Store = STORE,
    raw: Annotated[
        Path | None, typer.Option(help="Folder of raw results, from which to decide without the store.")
    ] = None,
    precision: Annotated[
        float, typer.Option(help="Relative half-width that the maximum's interval should reach.")
    ] = 0.05,
    most: Annotated[int, typer.Option(help="Largest number of loads to try.")] = 6,
    most_if_few: Annotated[
        int, typer.Option(help="The same while fewer than three of them lie beyond the knee, if it is more.")
    ] = 0,
    without: Annotated[
        list[str] | None, typer.Option(help="Trial to ignore because it is not finished (may be repeated).")
    ] = None,
    json: AsJson = False,
) -> None:
    """Says which load a capacity search runs next, or why it stops."""
    from dataclasses import asdict

    from ntier_analysis.verdict.search import Goal

    if not re.fullmatch(r"0*[1-9][0-9]{0,8}(,0*[1-9][0-9]{0,8})*", users, re.ASCII):
        raise DataError(f"users: {users!r}: expected whole numbers above 0 with commas (1000,2000)")
    goal = Goal.over(tuple(sorted({int(u) for u in users.split(",")})), precision, most, most_if_few)
    if raw is not None:
        from ntier_analysis.searching import next_of_raw

        step = next_of_raw(raw / sweep, goal, without or [])
    else:
        from ntier_analysis.verdict.store import searched

        step = searched(store, sweep, goal, without or [])
    if json:
        import orjson

        print(orjson.dumps(asdict(step)).decode())
        return
    print(f"{'stop' if step.users is None else step.users} ({step.reason}): {step.why}")


@app.command()
def foresee(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep; it need not be in the store yet.")],
    topology: Annotated[str, typer.Option(help="Its topology; trials of its other sweeps count, too.")],
    scale: Annotated[float, typer.Option(help="Its scale.")],
    run_s: Annotated[float, typer.Option(help="Length of its runs, s.", min=1, max=1e6)],
    store: Store = STORE,
    most: Annotated[int, typer.Option(help="Largest number of trials beyond the knee.", min=2, max=1000)] = 30,
    json: AsJson = False,
) -> None:
    """Says how narrow the maximum's interval will be.

    Uses the trials beyond the knee that the store holds of this topology."""
    import orjson

    from ntier_analysis.verdict.foresight import as_json, foresight

    if not (scale > 0 and math.isfinite(scale)):
        raise DataError(f"--scale is {scale:g}, allowed is a number above 0")
    told = as_json(foresight(store, sweep, topology, scale), run_s, most)
    if json:
        print(orjson.dumps(told, option=orjson.OPT_NON_STR_KEYS).decode())
        return
    if told["source"] is None:
        print("not known: the store has no two valid trials beyond the knee of this topology")
        return
    print(f"from {counted(told['trials_n'], 'trial')} of {told['source']}")
    for n, (middle, low, high) in told["half_widths"].items():
        print(f"{n:4d} trials  +-{100 * middle:.1f} %  (8 times in 10: {100 * low:.1f} to {100 * high:.1f} %)")


@app.command()
def check(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STORE] [EXPECTED]",
            help="EXPECTED: YAML or JSON, {sweep: [expectation, ...]}; before it the store, unless --store is given.",
        ),
    ] = None,
    store: PlacedAnywhere = None,
    expect: Annotated[list[str] | None, typer.Option(help="An expectation; may be repeated.")] = None,
    sweep: Annotated[list[str] | None, typer.Option(help="Only this sweep (may be repeated).")] = None,
    allow_undecided: Annotated[
        bool, typer.Option("--allow-undecided", help="Do not fail if the data cannot decide.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Checks whether expectations hold: a gate for CI.

    Exit code 3 if an expectation does not hold, or cannot be decided.

    ntier-analysis check --store results/store --expect "max_throughput >= 100" --expect "verdict == single db cpu" """
    from ntier_analysis.expectation.command import run
    from ntier_analysis.places import opened

    place, files = placed(store, arguments)
    if len(files) > 1:
        raise DataError(f"check: one file of expectations is allowed, there are: {', '.join(files)}")
    expected = Path(files[0]) if files else None
    text, failed = run(opened(place), expect or [], expected, sweep, allow_undecided=allow_undecided, json=json)
    print(text)
    if failed:
        print(f"{counted(failed, 'expectation')} not met", file=sys.stderr)
        raise typer.Exit(3)


@app.command()
def claims(
    file: Annotated[Path, typer.Argument(help="YAML: {claim: {says, place, paper, sweep, expect}}.")],
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """Lists which claims of a paper hold in a store.

    ntier-analysis claims studies/two-phase-commit/claims.yaml --store results/store"""
    from dataclasses import asdict

    import orjson

    from ntier_analysis.expectation.claims import judge, read, table

    judged = judge(read(file), store)
    print(orjson.dumps([asdict(c) for c in judged], option=orjson.OPT_INDENT_2).decode() if json else table(judged))
