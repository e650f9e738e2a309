"""One figure of one sweep, drawn when it is asked for."""
