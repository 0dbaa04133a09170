"""Canaries: known queries with the contexts that retrieval must return, the report on a run, and the stored history."""
