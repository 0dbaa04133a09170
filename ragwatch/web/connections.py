"""Connections: how many there may be, in all and from one client, and which one is closed to make room for another.

A new connection is never refused because of others that do nothing: the one that has been idle for longest is closed
for it, those that never asked anything first. Whoever asks for health or figures is answered however many there are;
other requests are refused where too many are being answered already.
"""

from __future__ import annotations

import resource
from collections import Counter
from typing import Protocol

MOST = 256
FEWEST = 16
RESERVED = 16  # beyond the limit, for those who ask for health and figures
PER_CLIENT = 4  # a client may have this part of them; behind a proxy everybody is one client
DESCRIPTORS = 8  # of all that the process may have open, this part; the rest is for logs and the state
VITAL = frozenset({"/metrics", "/-/healthy", "/-/ready"})


class Connection(Protocol):
    """One connection, as this module looks at it.

    Attributes:
        host: Address of the client, without its port.
    """

    host: str

    def idle(self) -> tuple[int, float] | None:
        """How dispensable it is and since when it is idle, the least of which goes first; None while it is needed."""
        ...

    def hang_up(self) -> None:
        """Close it at once, whatever is still to be sent."""
        ...


class Connections:
    """All connections of a server.

    Args:
        most: How many there may be; a few more for those who ask for health and figures.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._per_client = max(most // PER_CLIENT, 1)
        self._open: dict[Connection, None] = {}
        self._answering: dict[Connection, None] = {}
        self._clients: Counter[str] = Counter()

    def opened(self, one: Connection) -> None:
        """Somebody has connected; others may have to go."""
        self._open[one] = None
        of_client = [each for each in self._open if each.host == one.host]
        if len(of_client) > self._per_client:
            self._close_idlest(of_client, one)
        if len(self._open) > self._most:
            made_room = self._close_idlest(list(self._open), one)
            if not made_room and len(self._open) > self._most + RESERVED:
                self._close(one)

    def closed(self, one: Connection) -> None:
        """It is gone."""
        self._open.pop(one, None)
        self.answered(one)

    def begin(self, one: Connection, path: str) -> bool:
        """A request begins. False where too many are being answered, in all or for its client."""
        if path in VITAL:
            return True
        if len(self._answering) >= self._most or self._clients[one.host] >= self._per_client:
            return False
        self._answering[one] = None
        self._clients[one.host] += 1
        return True

    def answered(self, one: Connection) -> None:
        """Its request, if there was one, is answered."""
        if one in self._answering:
            del self._answering[one]
            self._clients[one.host] -= 1
            if not self._clients[one.host]:
                del self._clients[one.host]

    def _close_idlest(self, among: list[Connection], newcomer: Connection) -> bool:
        idle = [
            (since, place, each) for place, each in enumerate(among) if (since := each.idle()) and each is not newcomer
        ]
        if not idle:
            return False
        self._close(min(idle, key=lambda each: each[:2])[2])
        return True

    def _close(self, one: Connection) -> None:
        self.closed(one)
        one.hang_up()


def most_connections() -> int:
    """How many connections this process has room for: each needs a file descriptor, as each followed log does."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    return max(FEWEST, min(MOST, soft // DESCRIPTORS))
