"""Forks a process that runs `ragwatch` for each message on the socket that it inherits; `forked.py` is the client.

It imports everything once. A message is one JSON object, with the descriptors of the three standard streams and of a
pipe. Into the pipe goes the process id, and later the exit code, a line each.
"""

import gc
import json
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

_MAX_MESSAGE_BYTES = 1 << 20
_STREAMS = 3


def _import_everything() -> None:
    """Import what any command needs."""
    from ragwatch.commands import runner  # noqa: F401, PLC0415 - what main imports
    from ragwatch.terminal.options import Arguments  # noqa: PLC0415 - the same

    commands = Arguments.__subclasses__()
    assert commands, "each process would import everything itself"
    for arguments in commands:
        import_module(arguments.work.partition(":")[0])


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
        _become(message, streams)
        return True
    for descriptor in set(streams):
        os.close(descriptor)
    os.write(status, b"%d\n" % pid)
    os.write(status, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _become(message: dict[str, Any], streams: Sequence[int]) -> None:
    """Turn the child into what `ragwatch ARGV` is right after Python has started."""
    os.chdir(message["cwd"])
    os.environ.clear()
    os.environ.update(message["env"])
    if message["interrupted"]:  # while a module is read, its file is left to the garbage collector
        warnings.filterwarnings("ignore", "unclosed file", ResourceWarning)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for number in message["closed"]:
        os.close(number)
    os.closerange(_STREAMS, 256)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        buffering = 1 if number == 2 else -1  # as Python itself
        is_closed = number in message["closed"]
        stream = None if is_closed else open(number, mode, buffering, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = ["ragwatch", *message["argv"]]
    from ragwatch import process  # noqa: PLC0415 - imported above

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # coverage has a handler of its own, which may wait for itself
    process.exit_on_interrupt()  # as `main` does first of all; until then nothing is sent
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored: tests run in the background too
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    _import_everything()
    gc.freeze()  # a child that ends looks at its own objects only
    assert threading.active_count() == 1, "a thread would not be forked along"
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        is_ragwatch = _serve(inherited)
    if is_ragwatch:
        from ragwatch.__main__ import main

        main()
