"""A socket in front of PostgreSQL that cuts a connection at its COMMIT: before the server has it, or after."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SOCKET = ".s.PGSQL.5432"
COMMIT = b"COMMIT"


class CutConnection:
    """Forwards connections until it is armed; the next COMMIT then ends its connection, once.

    Args:
        server: Folder of the socket of the server.
        folder: Folder of its own socket.
    """

    def __init__(self, server: Path, folder: Path) -> None:
        self._server = str(server / SOCKET)
        self._cut: str | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def arm(self, when: str) -> None:
        """Cut at the next COMMIT: `before` the server has it, or `after`."""
        self._cut = when

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._sockets += [client, server]
            for way in ((client, server), (server, client)):
                thread = threading.Thread(target=self._forward, args=way)
                thread.start()
                self._threads.append(thread)

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                if COMMIT in piece and self._cut is not None:
                    when, self._cut = self._cut, None
                    source.shutdown(socket.SHUT_RDWR)  # the reply reaches nobody
                    if when == "after":
                        target.sendall(piece)
                    break
                target.sendall(piece)
        except OSError:
            pass
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it; `close` alone does not
        for thread in self._threads[1:]:
            thread.join()
        for one in (self._listener, *self._sockets):
            one.close()
