"""A drawing: a figure with what it shows in words, its data, and where they come from."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from ntier_analysis.contracts.files import replacing
from ntier_analysis.figures.load_axis import in_its_words

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont

mpl.rcParams["svg.hashsalt"] = "ntier"  # equal data give equal bytes
FONT_LAYOUT = ("GSUB", "GPOS", "GDEF", "kern")
"""Tables of a font that say how letters stand together. A PDF names each glyph and its place, and needs none."""


@dataclass(frozen=True)
class Origin:
    """Where the numbers of a figure come from; written into the file's metadata."""

    sweep: str
    topology: str
    trials: tuple[str, ...]
    scale: float
    commit: str = "unknown"
    command: str = ""

    def text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


LONGEST_STEM = 120
"""Bytes: file systems allow 255, the ending and what a file that is being written has beside it included."""


def file_stem(name: str) -> str:
    """Letters, digits, `.`, `_` and `-` of a name; what is too long ends in a digest of the whole."""
    plain = re.sub(r"[^\w.-]+", "_", name)
    if len(plain.encode()) <= LONGEST_STEM:
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain.encode()[: LONGEST_STEM - 9].decode(errors='ignore')}-{digest}"


@dataclass(frozen=True)
class Drawing:
    """`name`: stem of its files, made one that every file system takes. `finding`: one sentence that says what is to
    be seen (also the alternative text). `caption`: what is drawn, with n, bandwidth and scale where they apply.
    `data`: the drawn values, tidy."""

    name: str
    figure: Figure
    finding: str
    caption: str
    data: pd.DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", file_stem(self.name))
        for name in ("finding", "caption"):
            object.__setattr__(self, name, in_its_words(getattr(self, name)))

    def _repr_png_(self) -> bytes:
        """How notebooks show it."""
        target = io.BytesIO()
        with placed(self.figure):
            self.figure.savefig(target, format="png", dpi=150)
        return target.getvalue()


@contextmanager
def placed(figure: Figure) -> Iterator[None]:
    """Inside, the layout is computed once instead of once per file: while a figure has a layout engine, even one that
    does nothing, each file is drawn twice. Afterwards the axes stand where they stood: a layout begins from there, and
    one that begins from another differs in the fifth digit, so that the same figure gave other bytes each time."""
    engine = figure.get_layout_engine()
    if engine is None:  # by hand, or placed already
        yield
        return
    before = [(axes, axes.get_position(original=True).frozen(), axes.get_in_layout()) for axes in figure.axes]
    engine.execute(figure)
    with mpl.rc_context({"figure.constrained_layout.use": False, "figure.autolayout": False}):
        figure.set_layout_engine(None)
    try:
        yield
    finally:
        for axes, position, in_layout in before:
            axes.set_position(position)
            axes.set_in_layout(in_layout)  # which `set_position` ends
        figure.set_layout_engine(engine)


@contextmanager
def pdf_fonts() -> Iterator[None]:
    """Inside, fonts in a PDF are TrueType, so that its text stays text, and have no `FONT_LAYOUT`: to cut these tables
    down to the glyphs of each file took a tenth of the time of a report, and to read them, which fontTools does before
    it drops a table, half of what was left for fonts. So they go as soon as it opens a font."""
    from fontTools import subset  # 0.1 s, which no other format needs

    load = subset.load_font

    def load_font(*arguments: Any, **options: Any) -> TTFont:
        font = load(*arguments, **options)
        for table in FONT_LAYOUT:
            if table in font:
                del font[table]
        return font

    subset.load_font = load_font
    try:
        with mpl.rc_context({"pdf.fonttype": 42}):
            yield
    finally:
        subset.load_font = load


def save(drawing: Drawing, origin: Origin, folder: Path) -> list[Path]:
    """Writes `<name>.png`, `<name>.pdf` and `<name>.csv` into `folder`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / drawing.name
    common = {"Title": drawing.finding, "Creator": "Ntier"}
    with placed(drawing.figure):
        png, pdf, csv = (stem.with_name(stem.name + end) for end in (".png", ".pdf", ".csv"))
        png_info = common | {"Description": drawing.caption, "Source": origin.text()}
        pdf_info = common | {"Subject": drawing.caption, "Keywords": origin.text(), "CreationDate": None}
        with replacing(png) as file:
            drawing.figure.savefig(file, format="png", dpi=300, metadata=png_info)
        with replacing(pdf) as file, pdf_fonts():
            drawing.figure.savefig(file, format="pdf", metadata=pdf_info)
    write_csv(drawing.data, csv, origin)
    return [png, pdf, csv]


def svg(drawing: Drawing, origin: Origin) -> bytes:
    """The figure as SVG text with real text elements."""
    target = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        meta = {"Title": drawing.finding, "Description": drawing.caption, "Source": origin.text(), "Date": None}
        drawing.figure.savefig(target, format="svg", metadata=meta)
    return target.getvalue()


def write_csv(frame: pd.DataFrame, path: Path, origin: Origin | None = None) -> Path:
    """CSV with the origin in a first line that starts with `#`, numbers with all their digits. Text that a spreadsheet
    would run as a formula is prefixed with an apostrophe."""
    safe = frame.copy()
    for column in safe.select_dtypes(include=["object", "string"]):
        text = safe[column]
        safe[column] = text.where(~text.astype(str).str.match(r"[=+\-@\t\r]"), "'" + text.astype(str))
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        if origin is not None:
            file.write(f"# {origin.text()}\n")
        safe.to_csv(file, index=False)
    return path
