"""Drift of scores, of traffic and of judges."""
