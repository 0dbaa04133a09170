"""Connection limits: which connection is closed for a new one, and which request is refused."""

from __future__ import annotations

import resource

import pytest

from ragwatch.web.server import connections
from ragwatch.web.server.connections import RESERVED, Connections, max_connections


class One:
    """A connection that tells how idle it is, and remembers that it was closed."""

    def __init__(self, host: str, idle: tuple[int, float] | None) -> None:
        self.host = host
        self.state = idle
        self.closed = False

    def idle(self) -> tuple[int, float] | None:
        """How dispensable it is, and since when."""
        return self.state

    def abort(self) -> None:
        """Note it."""
        self.closed = True


def opened(all_of_them: Connections, host: str, idle: tuple[int, float] | None) -> One:
    """A newcomer."""
    one = One(host, idle)
    all_of_them.opened(one)
    return one


def test_the_least_needed_goes_first() -> None:
    """Of those that are idle the lower rank goes, then whoever is idle for longer; nobody who is being answered."""
    limited = Connections(4)
    busy = opened(limited, "a", None)
    scraper, silent, late = (
        opened(limited, "b", (2, 1.0)),
        opened(limited, "c", (0, 5.0)),
        opened(limited, "d", (0, 6.0)),
    )
    ones = [busy, scraper, silent, late]
    for number, gone in enumerate((silent, late, scraper)):
        opened(limited, f"new {number}", None)
        assert [connection.closed for connection in ones].count(True) == number + 1
        assert gone.closed
    assert not busy.closed


def test_a_client_closes_its_own_first() -> None:
    """A client with more than its part loses its own oldest one; those of others stay."""
    limited = Connections(8)
    other = opened(limited, "other", (0, 0.0))
    own = [opened(limited, "one", (0, float(number))) for number in range(1, 6)]
    assert [connection.closed for connection in own] == [True, True, True, False, False]
    assert not other.closed


def test_newcomers_are_closed_only_where_nobody_is_idle() -> None:
    """Beyond the reserve, when all are being answered, there is no place."""
    limited = Connections(4)
    ones = [opened(limited, str(number), None) for number in range(4 + RESERVED + 1)]
    assert [connection.closed for connection in ones] == [False] * (4 + RESERVED) + [True]
    limited.closed(ones[0])
    assert not opened(limited, "next", None).closed


def test_requests_are_limited_in_all_and_by_client() -> None:
    """A client is answered a part of all that may be answered at once; whoever asks for health always is."""
    limited = Connections(8)
    own = [opened(limited, "one", None) for _ in range(3)]
    assert [limited.begin(connection, "/samples") for connection in own] == [True, True, False]
    assert limited.begin(own[2], "/metrics")
    assert limited.begin(own[2], "/-/healthy")
    limited.answered(own[2])  # it holds no place
    assert not limited.begin(own[2], "/samples")
    others = [opened(limited, f"{number // 2}", None) for number in range(8)]
    assert [limited.begin(connection, "/") for connection in others] == [True] * 6 + [False] * 2
    limited.answered(own[0])
    assert limited.begin(others[6], "/")
    assert all(limited.begin(connection, "/-/ready") for connection in others)


@pytest.mark.parametrize(
    ("soft", "most"), [(resource.RLIM_INFINITY, 256), (1 << 20, 256), (1024, 128), (256, 32), (10, 16)]
)
def test_descriptors_limit_connections(soft: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process may open little, followed logs keep most of it."""
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (soft, soft))
    assert max_connections() == most
