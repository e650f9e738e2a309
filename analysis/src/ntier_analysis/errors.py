"""Errors that a person can act on."""


class DataError(ValueError):
    """Input that does not follow its contract; the message names file, line or column, and what is allowed."""


def one_line(error: Exception, most: int = 1000) -> str:
    """What a person reads; a value of thousands of letters is cut in its middle."""
    text = " ".join(str(error).splitlines())
    return text if len(text) <= most else f"{text[: most - 300]} ... {text[-295:]}"
