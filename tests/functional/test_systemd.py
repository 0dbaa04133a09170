"""The unit's filter of system calls, really in force: every judge reads under it, and nothing is killed by it."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.patience import DEADLINE

UNIT = (Path(__file__).parents[2] / "deploy" / "systemd" / "ragwatch.service").read_text(encoding="utf-8")
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
PERMISSION = {"EPERM": 1}
OF_ROOT = {"fchown"}  # SQLite asks for it only where it runs as root, which the unit never does
ROW = {"question": "How long is it?", "contexts": ["It lasts two years."], "answer": "It lasts three years."}


def calls(name: str) -> set[str]:
    """System calls of a set of systemd, sets within it included."""
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is missing: Debian package `systemd`")
    told = subprocess.run(
        [program, "syscall-filter", name], capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    words = {line.strip() for line in told.stdout.splitlines()[1:] if not line.strip().startswith("#")} - {""}
    return {call for word in words for call in (calls(word) if word.startswith("@") else {word})}


def refusing(names: set[str], action: int) -> Callable[[], None]:
    """What a child does before it begins: refuse these system calls for good."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        pytest.skip("libseccomp is missing: Debian package `libseccomp2`")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint)
    library.seccomp_load.argtypes = (ctypes.c_void_p,)
    numbers = [library.seccomp_syscall_resolve_name(name.encode()) for name in sorted(names)]

    def begin() -> None:
        filters = library.seccomp_init(ALLOW)
        for number in numbers:
            if number >= 0:
                assert library.seccomp_rule_add(filters, action, number, 0) == 0
        assert library.seccomp_load(filters) == 0

    return begin


@pytest.mark.parametrize("kind", ["lexical", "local"])
def test_a_judge_reads_under_the_filter_of_the_unit(kind: str, tmp_path: Path) -> None:
    """What the unit refuses is refused with an error and not by a kill: libraries ask for more than they need."""
    refused = re.search(r"(?m)^SystemCallFilter=~(.+)$", UNIT)
    number = re.search(r"(?m)^SystemCallErrorNumber=(\w+)$", UNIT)
    assert refused is not None
    names = {call for each in refused[1].split() for call in calls(each)} - OF_ROOT
    action = FAIL | PERMISSION[number[1]] if number else KILL
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
        preexec_fn=refusing(names, action),
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert 'ragwatch_samples_judged_total{judge="reader",route="other"} 1.0' in done.stdout


def test_the_process_s_own_series_are_there() -> None:
    """Memory and CPU of a process are told only where /proc/stat can be read: `ProcSubset=pid` hides it."""
    assert "ProcSubset=pid" not in UNIT
