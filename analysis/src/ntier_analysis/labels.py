"""Columns of labels: few texts, each of them many times.

Parsers make texts of them. What ingest joins, and the samples that are judged, have categories: they are compared,
grouped, sorted and joined by numbers, in a fraction of the time. Categories are sorted, so that both sort alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionArray
from pandas.api.types import union_categoricals


def repeated(texts: Sequence[str], times: Sequence[int]) -> ExtensionArray:
    """Each text so many times in a row -> (sum of times,) texts."""
    raw = [text.encode() for text in texts]
    content = b"".join(text * n for text, n in zip(raw, times, strict=True))
    ends = np.cumsum(np.repeat(np.array([len(text) for text in raw], np.int64), times))
    places = np.concatenate([[0], ends]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(places), pa.py_buffer(content)).to_pandas().array


def chosen(texts: Sequence[str], codes: np.ndarray) -> ExtensionArray:
    """The text of each number -> (codes,) texts."""
    return pa.array(texts, pa.large_string()).take(pa.array(codes)).to_pandas().array


def of_parts(texts: Sequence[str], sizes: Sequence[int]) -> pd.Categorical:
    """Each text so many times in a row, as categories."""
    known, codes = np.unique(np.array(texts, dtype=str), return_inverse=True)
    return pd.Categorical.from_codes(np.repeat(codes, sizes), pd.Index(known, dtype="str"))


def categorized(frame: pd.DataFrame) -> pd.DataFrame:
    """With categories for texts."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("str").columns, "category"))


def joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all parts; what has categories in each of them has them there, too."""
    labels = [c for c in parts[0] if all(c in p and isinstance(p[c].dtype, pd.CategoricalDtype) for p in parts)]
    frame = pd.concat([part.drop(columns=labels) for part in parts], ignore_index=True)
    return frame.assign(**{c: union_categoricals([p[c] for p in parts], sort_categories=True) for c in labels})


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """With the categories of each column sorted, and only those that occur."""
    made = {}
    for name in frame.select_dtypes("category").columns:
        column = frame[name].cat.remove_unused_categories()
        made[name] = column.cat.reorder_categories(sorted(column.cat.categories))
    return frame.assign(**made)
