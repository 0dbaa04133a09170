"""The unit of systemd in force: judges read under its filter, and the daemon works in a sandbox like its own."""

import base64
import ctypes
import errno
import json
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from functional.daemon import asked
from support.patience import DEADLINE, wait_until
from support.programs import installed

ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
EQUAL, MASKED_EQUAL = 4, 7
FAMILIES = range(46)
SHM_EXEC = 0o100000


class _Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`: an argument of a system call, and what it is compared with."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def calls(name: str) -> set[str]:
    """System calls of a set of systemd, sets within it included."""
    program = installed("systemd-analyze", "systemd")
    told = subprocess.run(
        [program, "syscall-filter", name], capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    words = {line.strip() for line in told.stdout.splitlines()[1:] if not line.strip().startswith("#")} - {""}
    return {call for word in words for call in (calls(word) if word.startswith("@") else {word})}


class UnitFilter:
    """The filter of a unit: `SystemCallFilter=~`, `RestrictAddressFamilies` and `MemoryDenyWriteExecute`.

    Args:
        unit: Text of the unit.
        without: System calls that are allowed all the same.
    """

    def __init__(self, unit: str, *, without: Iterable[str] = ()) -> None:
        try:
            self._library: Any = ctypes.CDLL("libseccomp.so.2")
        except OSError:
            pytest.skip("libseccomp is missing: Debian package `libseccomp2`")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._filter = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(ALLOW)))
        refused = re.search(r"(?m)^SystemCallFilter=~(.+)$", unit)
        assert refused is not None
        number = re.search(r"(?m)^SystemCallErrorNumber=(\w+)$", unit)
        action = FAIL | getattr(errno, number[1]) if number else KILL
        for name in sorted({call for word in refused[1].split() for call in calls(word)} - {*without}):
            self._refuse(name, action)
        families = re.search(r"(?m)^RestrictAddressFamilies=(.+)$", unit)
        if families is not None:
            allowed = {getattr(socket, name) for name in families[1].split()}
            for family in set(FAMILIES) - allowed:
                self._refuse("socket", FAIL | errno.EAFNOSUPPORT, _Comparison(0, EQUAL, family))
        if "\nMemoryDenyWriteExecute=yes\n" in unit:
            both = mmap.PROT_WRITE | mmap.PROT_EXEC
            self._refuse("mmap", FAIL | errno.EPERM, _Comparison(2, MASKED_EQUAL, both, both))
            for name in ("mprotect", "pkey_mprotect"):
                executable = _Comparison(2, MASKED_EQUAL, mmap.PROT_EXEC, mmap.PROT_EXEC)
                self._refuse(name, FAIL | errno.EPERM, executable)
            self._refuse("shmat", FAIL | errno.EPERM, _Comparison(2, MASKED_EQUAL, SHM_EXEC, SHM_EXEC))

    def _refuse(self, name: str, action: int, *comparisons: _Comparison) -> None:
        call = self._library.seccomp_syscall_resolve_name(name.encode())
        if call < 0:  # not a system call of this architecture
            return
        rows = (_Comparison * len(comparisons))(*comparisons)
        arguments = (self._filter, ctypes.c_uint32(action), call, len(comparisons), rows)
        assert self._library.seccomp_rule_add_array(*arguments) == 0, name

    def load(self) -> None:
        """Install the filter in this process for good; called between fork and exec."""
        assert self._library.seccomp_load(self._filter) == 0

    def export(self, descriptor: int) -> None:
        """Write the filter to a file as BPF, for bubblewrap."""
        assert self._library.seccomp_export_bpf(self._filter, descriptor) == 0


ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy" / "systemd" / "ragwatch.service").read_text(encoding="utf-8")
OF_ROOT = {"fchown"}  # SQLite asks for it only where it runs as root, which the unit never does
ROW = {"question": "How long is it?", "contexts": ["It lasts two years."], "answer": "It lasts three years."}
JUDGED = 'ragwatch_samples_judged_total{judge="reader",route="other"} 1.0'
CREDENTIALS = "/run/credentials/ragwatch.service"
SANDBOX = {
    "ProtectSystem=strict": "--ro-bind / /",
    "ProtectHome=yes": "--tmpfs /home --tmpfs /root",
    "PrivateTmp=yes": "--tmpfs /tmp --tmpfs /var/tmp",
    "PrivateDevices=yes": "--dev /dev",
    "ProtectProc=invisible": "--unshare-pid --as-pid-1 --proc /proc",
    "PrivateUsers=yes": "--unshare-user",
    "DynamicUser=yes": "--uid 64123 --gid 64123",
    "ProtectHostname=yes": "--unshare-uts",
    "RemoveIPC=yes": "--unshare-ipc",
    "CapabilityBoundingSet=": "--cap-drop ALL",
    "StateDirectory=ragwatch": "--tmpfs /var/lib --bind {state} /var/lib/ragwatch",
    "LoadCredential=web.yml:/etc/ragwatch/web.yml": "--tmpfs /run --ro-bind {web} " + f"{CREDENTIALS}/web.yml",
    "ReadOnlyPaths=-/var/log/rag": "--tmpfs /var/log --ro-bind {log} /var/log/rag",
}
"""What bubblewrap does for a line of the unit. The paths of the tests and of Python are added read-only."""

COMMON = ("--die-with-parent", "--new-session", "--chdir", "/")
REFUSED = """
import errno, mmap, os, socket, sys
def number(action):
    try: action()
    except OSError as error: return errno.errorcode[error.errno]
print(number(lambda: open("/etc/new", "w")), number(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
      number(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)), number(lambda: os.chroot("/")),
      number(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)), os.path.exists(sys.argv[1]), os.getuid() > 0,
      number(lambda: open("/var/lib/ragwatch/new", "w")), sum(name.isdigit() for name in os.listdir("/proc")),
      file=sys.stderr)
"""


@pytest.mark.parametrize("kind", ["lexical", "local"])
def test_a_judge_reads_under_the_filter_of_the_unit(kind: str, tmp_path: Path) -> None:
    """What the unit refuses is refused with an error and not by a kill: libraries ask for more than they need."""
    (tmp_path / "log.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "ragwatch.yaml").write_text(
        f"state: {tmp_path}/state\n"
        f"sources: [{{kind: tail, name: app, path: {tmp_path}/log.jsonl}}]\n"
        f"judges: [{{name: reader, kind: {kind}}}]\nsampling: {{probability: 1.0}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "ragwatch", "run", "--once", "--config", str(tmp_path / "ragwatch.yaml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
        preexec_fn=UnitFilter(UNIT, without=OF_ROOT).load,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert JUDGED in done.stdout


def test_the_process_s_own_series_are_there() -> None:
    """Memory and CPU of a process are told only where /proc/stat can be read: `ProcSubset=pid` hides it."""
    assert "ProcSubset=pid" not in UNIT


@contextmanager
def sandboxed(folder: Path, command: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A command in a sandbox that is built from the lines of the unit; yields bubblewrap and the id of the command."""
    program = installed("bwrap", "bubblewrap")
    plain = [program, *" ".join(text for text in SANDBOX.values() if "{" not in text).split(), "true"]
    tried = subprocess.run(plain, capture_output=True, text=True, check=False, timeout=DEADLINE)
    if tried.returncode != 0:  # in a container that may have no namespaces, for one
        pytest.skip(f"no sandbox can be made here: {tried.stderr.strip()}")
    paths = {"state": folder / "state", "web": folder / "web.yml", "log": folder / "log"}
    lines = [line for line in SANDBOX if re.search(rf"(?m)^{re.escape(line)}$", UNIT)]
    assert lines == [*SANDBOX]
    options = [word.format(**paths) for line in lines for word in SANDBOX[line].split()]
    for path in sorted({sys.base_prefix, sys.prefix, str(ROOT), str(folder / "ragwatch.yaml")}):
        options += ["--ro-bind", path, path]
    with tempfile.TemporaryFile() as rules:
        UnitFilter(UNIT).export(rules.fileno())
        rules.seek(0)
        reader, writer = os.pipe()
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CREDENTIALS_DIRECTORY": CREDENTIALS}
        process = subprocess.Popen(
            [program, *options, *COMMON, "--info-fd", str(writer), "--seccomp", str(rules.fileno()), *command],
            env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=[rules.fileno(), writer],
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(writer)
    try:
        with os.fdopen(reader) as info:
            pid = json.load(info)["child-pid"]
        yield process, pid
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def prepared(folder: Path) -> None:
    """Write what the unit is given: a configuration, users, a log, and a directory for the state."""
    for name in ("state", "log"):
        (folder / name).mkdir(mode=0o700)
    (folder / "log" / "app.jsonl").write_text(json.dumps(ROW) + "\n")
    hashed = bcrypt.hashpw(b"a password", bcrypt.gensalt(4)).decode()
    (folder / "web.yml").write_text(f"basic_auth_users: {{prometheus: '{hashed}'}}\n")
    (folder / "web.yml").chmod(0o600)
    (folder / "ragwatch.yaml").write_text(
        "state: /var/lib/ragwatch\nestimates: {every: 200ms}\nsampling: {probability: 1.0}\n"
        "web: {listen: '127.0.0.1:0', config_file: '${CREDENTIALS_DIRECTORY}/web.yml', "
        "users: {prometheus: [metrics]}}\n"
        "sources: [{kind: tail, name: app, path: /var/log/rag/*.jsonl, start: beginning}]\n"
        "judges: [{name: reader, kind: lexical}]\n"
    )


def fetched(address: str, path: str) -> str:
    """The response to a request of the user that Prometheus has."""
    login = base64.b64encode(b"prometheus:a password").decode()
    return asked(address + path, headers={"Authorization": f"Basic {login}"}).body.decode()


def test_the_sandbox_refuses_what_the_unit_refuses(tmp_path: Path) -> None:
    """Writing to the system, other sockets, writable code, privileges, the tests in /tmp; its state may be written."""
    prepared(tmp_path)
    with sandboxed(tmp_path, [sys.executable, "-S", "-c", REFUSED, str(tmp_path / "log")]) as (process, _):
        _, refused = process.communicate(timeout=DEADLINE)
    assert refused.split() == ["EROFS", "EAFNOSUPPORT", "EPERM", "EPERM", "EPERM", "False", "True", "None", "1"]


def test_the_daemon_works_in_a_sandbox_like_that_of_the_unit(tmp_path: Path) -> None:
    """With a read-only root, no home, no devices and no capability it reads, serves its users, and ends with 0."""
    prepared(tmp_path)
    command = [sys.executable, "-m", "ragwatch", "run", "--config", str(tmp_path / "ragwatch.yaml")]
    with sandboxed(tmp_path, command) as (process, pid):
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while '"started"' not in lines[-1]:
            assert lines[-1], f"ended with {process.wait()} before it served: {lines}"
            lines.append(process.stderr.readline())
        address = json.loads(lines[-1])["address"]
        wait_until(lambda: JUDGED in fetched(address, "/metrics"), "the answer is judged")
        assert "process_resident_memory_bytes" in fetched(address, "/metrics")
        os.kill(pid, signal.SIGTERM)
        assert process.wait(DEADLINE) == 0, process.stderr.read()
    assert {"ragwatch.db", "ragwatch.state"} <= {path.name for path in (tmp_path / "state").iterdir()}
