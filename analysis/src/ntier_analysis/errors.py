"""Errors that a person can act on."""


class DataError(ValueError):
    """Input that does not follow its contract; the message names file, line or column, and what is allowed."""
