"""Executes the notebooks on a store and writes each, with its outputs, as HTML-ready .ipynb.

    notebooks/run.py --store results/store --out results/notebooks [NAME ...]

Exit codes: 0 done, 1 a notebook failed (its outputs so far are kept), 2 wrong request."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent
TIMEOUT_S = 600


def notebooks() -> dict[str, Path]:
    """Name -> file, in the order of their numbers."""
    return {p.stem: p for p in sorted(FOLDER.glob("[0-9][0-9]-*.py"))}


def load(path: Path, parameters: dict[str, str]) -> nbformat.NotebookNode:
    """Reads a py:percent notebook and sets assignments in its cell tagged `parameters`.

    Raises KeyError for a parameter that the cell does not assign."""
    notebook = jupytext.read(path)
    cell = next(c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    for name, value in parameters.items():
        cell.source, found = re.subn(rf"(?m)^{name} = .*$", lambda _, n=name, v=value: f"{n} = {v!r}", cell.source)
        if not found:
            raise KeyError(f"{path.name}: no parameter {name}")
    return notebook


def execute(path: Path, out: Path, parameters: dict[str, str]) -> Path:
    """Runs one notebook; raises CellExecutionError after writing what it got to."""
    notebook = load(path, parameters)
    target = out / f"{path.stem}.ipynb"
    out.mkdir(parents=True, exist_ok=True)
    try:
        # a kernel on Unix sockets, which nobody else on the machine can reach; they lie beside its connection file
        with tempfile.TemporaryDirectory() as private:
            file = f"{private}/kernel.json"
            kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=file)
            NotebookClient(notebook, km=kernel, timeout=TIMEOUT_S).execute()
    finally:
        nbformat.write(notebook, target)
    return target


def main(arguments: list[str] | None = None) -> int:
    known = notebooks()
    parser = argparse.ArgumentParser(description="Executes the notebooks on a store.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all ({', '.join(known)})")
    parser.add_argument("--store", type=Path, default=Path("results/store"))
    parser.add_argument("--out", type=Path, default=Path("results/notebooks"))
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in known]
    if unknown:
        parser.error(f"unknown notebook {unknown[0]!r}; there are: {', '.join(known)}")
    if not (options.store / "trials").is_dir():
        parser.error(f"{options.store}: not a store; make one with: make ingest")
    failed = 0
    for name in options.names or known:
        try:
            print(execute(known[name], options.out, {"STORE": str(options.store.resolve())}))
        except CellExecutionError as error:
            failed = 1
            print(f"{name}: {error.ename}: {error.evalue}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
