"""Transactions on PostgreSQL nodes that all hold the same data: two-phase commit (ACID), or a commit on one node that
is applied to the others later (BASE)."""
