"""A store of several workers in memory, as far as leadership needs one: who leads, and what a leader has written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragwatch.errors import NotLeadingError


class Server:
    """What the workers share."""

    def __init__(self) -> None:
        self.now = 0.0
        self.holder, self.term, self.until = "", 0, 0.0
        self.written: list[str] = []


class SharedStore:
    """One worker's connection to the server."""

    def __init__(self, server: Server, name: str, term: Callable[[], int | None] | None = None) -> None:
        self.server, self.name, self._term = server, name, term

    def lead(self, seconds: float, *, force: bool = False) -> int | None:
        """Lead, unless another one does."""
        server = self.server
        over = server.until <= server.now
        if server.holder != self.name and not over and not force:
            return None
        server.term += server.holder != self.name or over
        server.holder, server.until = self.name, server.now + seconds
        return server.term

    def resign(self, term: int) -> None:
        """End a term."""
        if term == self.server.term:
            self.server.until = 0.0

    def fenced(self, term: Callable[[], int | None]) -> Any:
        """The same, for writes of a leader."""
        return SharedStore(self.server, self.name, term)

    def write(self, what: str) -> None:
        """Write within the term."""
        server = self.server
        if self._term is not None and (self._term() != server.term or server.until <= server.now):
            raise NotLeadingError
        server.written.append(what)
