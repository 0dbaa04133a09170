"""Ends the process that forks daemons, which is no leftover of a test."""

from functional.forked import end_server


def pytest_unconfigure() -> None:
    """End it with the session."""
    end_server()
