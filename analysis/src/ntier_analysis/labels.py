"""Columns of labels: few texts, each of them many times. From objects pandas makes them in ten times the time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pandas.api.extensions import ExtensionArray


def repeated(texts: Sequence[str], times: Sequence[int]) -> ExtensionArray:
    """Each text so many times in a row -> (sum of times,) texts."""
    raw = [text.encode() for text in texts]
    content = b"".join(text * n for text, n in zip(raw, times, strict=True))
    ends = np.cumsum(np.repeat(np.array([len(text) for text in raw], np.int64), times))
    places = np.concatenate([[0], ends]).astype(np.int64)
    return _column(pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(places), pa.py_buffer(content)))


def chosen(texts: Sequence[str], codes: np.ndarray) -> ExtensionArray:
    """The text of each number -> (codes,) texts."""
    return _column(pa.array(texts, pa.large_string()).take(pa.array(codes)))


def _column(texts: pa.Array) -> ExtensionArray:
    return texts.to_pandas().array
