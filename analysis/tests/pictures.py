"""Reports and maps without the files of their pictures, for tests of what they say: each figure is drawn once, into the
page, and not in two more formats, which is two fifths of the work. The files are tested where they are looked at
(report/test_report.py), and written by the program itself in demo/test_demo.py and store/test_store.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

from ntier_analysis.figures.drawing import Drawing, Origin, write_csv


def _save(drawing: Drawing, origin: Origin, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [write_csv(drawing.data, folder / f"{drawing.name}.csv", origin)]


@contextmanager
def no_picture_files() -> Iterator[None]:
    with mock.patch("ntier_analysis.report.page.save", _save), mock.patch("ntier_analysis.report.maps.save", _save):
        yield


@contextmanager
def no_drawn_pictures() -> Iterator[None]:
    """Nor drawn into the page, for tests whose figures are drawn elsewhere with data of the same form."""
    with (
        no_picture_files(),
        mock.patch("ntier_analysis.report.page.placed", nullcontext),
        mock.patch("ntier_analysis.report.shell.svg", return_value=b"<svg/>"),
    ):
        yield
