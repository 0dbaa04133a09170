"""TCP ports on which nothing listens, for servers that tests start and for addresses that refuse."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST, EPHEMERAL = 10_000, 32_768
"""Ports below the range that Linux gives out by itself."""
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that is free now, and that no server of another test is given by the kernel in the meantime.

    A port of the ephemeral range would not do: a test beside this one that asks for port 0 may get the same.
    """
    draw = random.SystemRandom()  # tests run with fixed seeds, in several processes
    end = int(RANGE.read_text().split()[0]) if RANGE.exists() else EPHEMERAL
    while True:
        port = draw.randrange(LOWEST, max(end, LOWEST + 1_000))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
