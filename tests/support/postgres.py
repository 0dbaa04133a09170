"""A real PostgreSQL of Debian's packages, started once for each process of the test run that asks for it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from pwd import getpwnam

import pytest

from support.patience import DEADLINE

MISSING = "PostgreSQL is not installed: apt install postgresql"
USER = "ragwatch"
# What is lost with the machine does not matter here, and a test that kills the server needs no disk to be flushed.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "autovacuum": "off",
    "log_min_messages": "fatal",
    "password_encryption": "scram-sha-256",
}


_started: list[Postgres] = []


class Postgres:
    """A server that is reached through a socket in its folder."""

    def __init__(self, programs: Path, folder: Path, **settings: str) -> None:
        self._programs = programs
        self.folder = folder
        self._settings = {**SETTINGS, **settings}
        self._user = "postgres" if os.geteuid() == 0 else None  # it refuses to be root

    @property
    def url(self) -> str:
        """Address of its database `postgres`."""
        return f"postgresql://{USER}@/postgres?host={self.folder}"

    def create(self) -> None:
        """Make its files, and start it."""
        if self._user is not None:
            os.chown(self.folder, getpwnam(self._user).pw_uid, -1)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale", "C", "--no-sync")
        self.start()

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        settings = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' {settings}"
        self._run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-o", options, "-l", str(self.folder / "log"), "start"
        )

    def postmaster(self) -> str:
        """Process id of the server."""
        return (self.folder / "data" / "postmaster.pid").read_text().split()[0]

    def stop(self, mode: str = "immediate") -> None:
        """End it, if it runs; `immediate` is a crash."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def delete(self) -> None:
        """End it, and delete its files."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statements: str, **values: str) -> str:
        """What psql prints; `:'name'` in the statements becomes a quoted value."""
        named = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
        place = ["-h", str(self.folder), "-U", USER, "postgres"]
        return self._run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *named, *place, text=statements)

    def _run(self, program: str, *arguments: str, text: str = "") -> str:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            user=self._user,
            cwd=self.folder,
            check=False,
            timeout=DEADLINE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def new_server(**settings: str) -> Postgres:
    """A server of its own, with other settings. Skips the test where PostgreSQL is not installed."""
    binary = shutil.which("postgres") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres")), None)
    if binary is None:
        pytest.skip(MISSING)
    server = Postgres(Path(binary).resolve().parent, Path(tempfile.mkdtemp(prefix="ragwatch-postgres-")), **settings)
    try:
        server.create()
    except BaseException:
        server.delete()
        raise
    return server


@cache
def shared_server() -> Postgres:
    """The server of this process, for tests that leave it running. Skips the test where PostgreSQL is not installed."""
    server = new_server()
    _started.append(server)
    atexit.register(pytest_sessionfinish)  # of a worker that is forked, which finishes no session
    return server


def pytest_sessionfinish() -> None:
    """End the server of this process."""
    while _started:
        _started.pop().delete()
