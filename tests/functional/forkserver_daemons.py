"""Forks a process that runs `ragwatch` for each message on the socket that it inherits.

A message is one JSON object, with the descriptors of the three standard streams and of a pipe. Into the pipe goes the
process id, and later the exit code, a line each. `forked.py` is the client.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

_MAX_MESSAGE_BYTES = 1 << 20
_STREAMS = 3


def _serve(requests: socket.socket) -> bool:
    """Fork a process for each message until there are none. True in a process that is to run `ragwatch`."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors leave nothing to wait for
    while True:
        content, descriptors, _, _ = socket.recv_fds(requests, _MAX_MESSAGE_BYTES, _STREAMS + 1)
        if not content:
            return False
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _supervise(json.loads(content), descriptors[:_STREAMS], descriptors[_STREAMS])
        for descriptor in descriptors:
            os.close(descriptor)


def _supervise(message: dict[str, Any], streams: list[int], status: int) -> bool:
    """Fork the process, and write its id and its exit code. Returns True in the process."""
    pid = os.fork()
    if pid == 0:
        from forkserver import become  # noqa: PLC0415 - beside this script; tests import it as a part of a package

        os.environ.clear()
        become({**message, "group": False}, dict(enumerate(streams)))
        return True
    for descriptor in set(streams):
        os.close(descriptor)
    os.write(status, b"%d\n" % pid)
    os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored: tests run in the background too
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    from forkserver import import_everything

    import_everything()
    gc.freeze()  # a child that ends looks at its own objects only
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        is_ragwatch = _serve(inherited)
    if is_ragwatch:
        from ragwatch.__main__ import main

        main()
