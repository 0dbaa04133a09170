"""`ragwatch` as a process that is forked from one that has imported everything: each start saves a second of CPU.

A forked process is a real one, with an environment, streams and signals of its own; only the start of Python and the
imports are skipped. Tests of starting itself use a new Python instead.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TextIO

from support.patience import DEADLINE

_SERVER = Path(__file__).with_name("forkserver.py")


class ForkedProcess:
    """The part of `subprocess.Popen` that tests use, for `ragwatch ARGV`.

    Args:
        argv: Its arguments.
        env: Its environment; None for that of this process.
        cwd: Its working directory; None for that of this process.
        stdin: Descriptor of its standard input; None for /dev/null.
        stdout: Descriptor of its standard output; None for /dev/null.
        stderr: Descriptor of its standard error; None for a pipe.
        closed: Numbers of the standard streams that are closed from the start.
        interrupted: Whether it may be interrupted while it imports.

    Attributes:
        pid: Process id.
        stderr: The pipe of its standard error, as text.
        returncode: Its exit code, negative for a signal; None while it runs.
    """

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        closed: Sequence[int] = (),
        interrupted: bool = False,
    ) -> None:
        environment = dict(os.environ if env is None else env)
        message = {"argv": list(map(str, argv)), "cwd": str(cwd or Path.cwd()), "env": environment}
        more = {"closed": closed, "interrupted": interrupted}
        error_reader, error_writer = os.pipe()
        self._status, status_writer = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        streams = [nothing if stdin is None else stdin, nothing if stdout is None else stdout]
        streams.append(error_writer if stderr is None else stderr)
        socket.send_fds(_server()[0], [json.dumps(message | more).encode()], [*streams, status_writer])
        for descriptor in (nothing, error_writer, status_writer):
            os.close(descriptor)
        self.stderr: TextIO = os.fdopen(error_reader, encoding="utf-8", errors="replace")
        self.returncode: int | None = None
        self._told = b""
        while b"\n" not in self._told:
            self._told += self._read_status()
        self.pid = int(self._told.partition(b"\n")[0])

    def _read_status(self) -> bytes:
        told = os.read(self._status, 64)
        if not told:
            raise AssertionError("the process that forks the daemons has ended")
        return told

    def poll(self) -> int | None:
        """Exit code; None while it runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Returns the exit code.

        Raises:
            subprocess.TimeoutExpired: It is still running.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            remaining = None if end is None else max(0.0, end - time.monotonic())
            if not select.select([self._status], [], [], remaining)[0]:
                raise subprocess.TimeoutExpired("ragwatch", timeout or 0.0)
            self._told += self._read_status()
            if self._told.count(b"\n") > 1:
                self.returncode = int(self._told.split(b"\n")[1])
                os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # the server has waited for it, and has not told us yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def handles(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal; one that has ended has none."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def run_forked(
    *argv: str | Path,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `ragwatch ARGV` to its end, as `subprocess.run` does. It is killed when it takes too long.

    Raises:
        subprocess.CalledProcessError: With `check`, its exit code is not 0.
    """
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as output:
        given.write(stdin)
        given.seek(0)
        process = ForkedProcess(argv, env=env, cwd=cwd, stdin=given.fileno(), stdout=output.fileno())
        killer = threading.Timer(DEADLINE, process.kill)
        killer.start()
        try:
            with process.stderr:
                errors = process.stderr.read()
            code = process.wait(DEADLINE)
        finally:
            killer.cancel()
            killer.join()
        output.seek(0)
        done = subprocess.CompletedProcess(["ragwatch", *map(str, argv)], code, output.read(), errors)
    if check:
        done.check_returncode()
    return done


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The server of this pytest process, and its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", _SERVER, str(theirs.fileno())], pass_fds=[theirs.fileno()]
    )
    theirs.close()
    atexit.register(end_server)  # of a worker, in which pytest does not end
    return ours, process


def end_server() -> None:
    """End the server of this process, if there is one."""
    if _server.cache_info().currsize:
        ours, process = _server()
        ours.close()
        process.wait()
        _server.cache_clear()
