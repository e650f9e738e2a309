"""Errors that a person can act on."""

import io
import sys


class DataError(ValueError):
    """Input that does not follow its contract; the message names file, line or column, and what is allowed."""


def one_line(error: Exception, most: int = 1000) -> str:
    """What a person reads; a value of thousands of letters is cut in its middle."""
    text = " ".join(str(error).splitlines())
    return text if len(text) <= most else f"{text[: most - 300]} ... {text[-295:]}"


def print_anything() -> None:
    """A letter that the output's encoding lacks (a terminal in latin-1, a file on Windows) is written as its number: it
    would end the program, perhaps after hours of work. To be called when a program begins."""
    for stream in (sys.stdout, sys.stderr):
        # another way than `strict` was chosen by the person or the locale, and ends nothing
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
