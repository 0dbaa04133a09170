"""The server, and the real clients that ask it."""

from loopback.fixture import claude, loopback, loopback_process, web  # noqa: F401 - fixtures
