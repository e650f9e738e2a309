"""Names of the checks of trials and of sweeps, for those who must not load the checks themselves."""

CHECK_NAMES = [
    "C1", "C1.end", "C1.gap", "C2", "C3", "C4", "C4.drift", "C5", "C6", "E1", "E1.window", "E2", "E3",
    "E3.accept", "G1", "G2", "G2.p99", "G3", "G3.gc", "G3.thread", "G3.throttled", "G4", "G5", "G6",
    "G6.connect", "H1", "H1.mean", "H2", "H2.p99", "H2.pressure", "H3", "H4", "H5", "H5.free", "H6", "H7",
    "H7.sweep", "M1", "M2", "M3", "O1", "O2", "O3", "O4", "O5", "O5.counters", "O5.split", "P1", "P2", "R1",
    "R2", "R3", "S1", "S1.sweep", "S2", "S2.sweep", "S3", "S3.cache", "S4", "W2", "W5", "W6", "W6.retries",
    "W7", "W8",
]  # fmt: skip
"""In the order of the alphabet, as validity.sweep.check_names finds them (a test holds both together)."""
