"""Canaries that run once, and those that answers propose."""
