"""A second family of known truth: a discrete-event model on SimPy, from queueing theory's side."""
