"""The system calls that a systemd unit refuses, as a seccomp filter like the one that systemd installs."""

from __future__ import annotations

import ctypes
import errno
import mmap
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable
from typing import Any

import pytest

from support.patience import DEADLINE

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
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is missing: Debian package `systemd`")
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
