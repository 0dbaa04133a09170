"""Canaries: known queries with the contexts that retrieval must return, and what one run of a suite measured."""
