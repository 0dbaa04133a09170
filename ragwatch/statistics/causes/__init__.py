"""Finds what failing answers have in common, with a stated share of false findings. Read `search` first."""
