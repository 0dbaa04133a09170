"""Runs the command line again and again: imports it once, then forks for every case.

A case is a real process with real streams and signals, but it need not spend a second on imports. Run as a script it
reads one JSON case a line on standard input, and writes one JSON result a line:

    {"argv": [...], "cwd": "...", "stdin": "...", "stdout": "capture", "stderr": "capture", "env": {},
     "signals": [[2, 0.01]], "seconds": 30}

A stream is a path, `capture` (outputs only), `closed`, or `gone` (a pipe whose reader is gone). A signal is sent so
many seconds after the start, or, if `handled` is given, after the process handles that one.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any

OUTPUTS = {"stdout": 1, "stderr": 2}
KILLED = -9


def import_everything() -> None:
    """Import what any command needs."""
    from ragwatch.commands import runner, streams  # noqa: F401, PLC0415 - what main imports
    from ragwatch.commands.options.lazy import Arguments  # noqa: PLC0415 - the same

    for arguments in Arguments.__subclasses__():
        import_module(arguments.work.partition(":")[0])


def _open(how: str, number: int, captured: dict[int, str]) -> int | None:
    """A descriptor for a stream of the case; None where it is to be closed."""
    if how == "closed":
        return None
    if how == "gone":
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    if how == "capture":
        descriptor, captured[number] = tempfile.mkstemp(prefix="ragwatch-case-")
        return descriptor
    return os.open(how, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def become(case: Mapping[str, Any], streams: Mapping[int, int | None]) -> None:
    """Turn the child into what `ragwatch ARGV` is right after Python has started."""
    if case.get("group", True):
        os.setpgid(0, 0)
    os.chdir(case["cwd"])
    os.environ.update(case.get("env", {}))
    for number, descriptor in streams.items():
        if descriptor is None:
            with contextlib.suppress(OSError):
                os.close(number)
        else:
            os.dup2(descriptor, number)
    os.closerange(3, 256)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        buffering = 1 if number == 2 else -1  # as Python itself
        stream = None if streams[number] is None else open(number, mode, buffering, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = ["ragwatch", *case["argv"]]
    from ragwatch import interrupts  # noqa: PLC0415 - imported above

    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # coverage has a handler of its own, which may wait for itself
    interrupts.exit_on_interrupt()  # as `main` does first of all; until then nothing is sent
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def _watch(pid: int, case: dict[str, Any], started: float) -> int:
    """Send the signals in time, and wait for the end; what takes too long is killed."""
    ended = os.pidfd_open(pid)
    try:
        if handled := case.get("handled"):
            _wait_until_handled(pid, handled, ended, case["seconds"])
            started = time.monotonic()
        for number, after in [*case.get("signals", []), (signal.SIGKILL, case["seconds"])]:
            ready, _, _ = select.select([ended], [], [], max(0.0, started + after - time.monotonic()))
            if ready:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    finally:
        os.close(ended)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _wait_until_handled(pid: int, number: int, ended: int, seconds: float) -> None:
    """Wait until a process has a handler for a signal, or has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not select.select([ended], [], [], 0.05)[0]:
        if handles(pid, number):
            return


def handles(pid: int, number: int) -> bool:
    """Whether a process, which may have ended but was not waited for, has a handler for a signal."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        caught = next((int(line.split()[1], 16) for line in file if line.startswith("SigCgt")), 0)
    return bool(caught >> (number - 1) & 1)


def _text(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123
        text = file.read()
    os.unlink(path)  # noqa: PTH108
    return text.decode("utf-8", "replace")


def serve() -> bool:
    """Answer cases until there are none. True in a child, which has become one."""
    replies = os.dup(1)
    os.dup2(2, 1)
    for line in iter(sys.stdin.readline, ""):
        case = json.loads(line)
        captured: dict[int, str] = {}
        streams = {0: _open(case.get("stdin", os.devnull), 0, captured)}
        streams |= {number: _open(case.get(name, "capture"), number, captured) for name, number in OUTPUTS.items()}
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            become(case, streams)
            return True
        for descriptor in streams.values():
            if descriptor is not None:
                os.close(descriptor)
        code = _watch(pid, case, started)
        result = {"code": code, "out": "", "err": "", "seconds": time.monotonic() - started}
        result |= {{1: "out", 2: "err"}[number]: _text(path) for number, path in captured.items()}
        os.write(replies, json.dumps(result).encode() + b"\n")
    return False


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored: tests run in the background too
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    import_everything()
    gc.freeze()  # a child that ends looks at its own objects only
    assert threading.active_count() == 1, "a thread would not be forked along"
    if serve():
        from ragwatch.__main__ import main

        main()
