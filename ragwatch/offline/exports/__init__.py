"""Verdicts as Parquet, and failing answers as tests."""
