"""What an interrupt does in each phase of a process, and imports without garbage collection."""

import gc
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.patience import DEADLINE

from ragwatch.process import without_garbage_collection

START = (
    "import os, signal; from ragwatch import process; kill = lambda: os.kill(os.getpid(), signal.SIGINT); "
    "end = process.TERMINATION; terminate = lambda: os.kill(os.getpid(), signal.SIGTERM); "
)
FINAL = "process.exit_on_interrupt()\nclass Final:\n    def __del__(self):\n        raise KeyboardInterrupt\nFinal()\n"


def _code(code: str, *, ignored: bool = False) -> tuple[int, str]:
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    found = subprocess.run(
        [sys.executable, "-c", START + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    return found.returncode, found.stdout + found.stderr


WORKS = """process.exit_on_interrupt()
try:
    with process.interruptible():
        kill()
except KeyboardInterrupt:
    print('raised')
"""
PHASES = {
    "at once": ("process.exit_on_interrupt(); kill()", (130, "")),
    "in a finalizer": (FINAL, (130, "")),
    "after work": ("process.exit_on_interrupt()\nwith process.interruptible():\n    pass\nkill()", (130, "")),
    "at the end": ("process.exit_on_interrupt(); process.ignore(); kill(); print('on')", (0, "on\n")),
    "not set up": ("process.ignore(); signal.signal(signal.SIGINT, lambda *_: print('own')); kill()", (0, "own\n")),
    "while it works": (WORKS, (0, "raised\n")),
    "told to end, not set up": ("terminate()", (-15, "")),
    "told to end during the start": (
        "end.await_start(); terminate(); end.tell(lambda: print('told'))",
        (0, "told\n"),
    ),
    "told to end after the start": (
        "end.await_start(); end.tell(lambda: print('told')); terminate(); terminate()",
        (0, "told\ntold\n"),
    ),
    "told to end twice during the start": ("end.await_start(); terminate(); terminate(); print('on')", (1, "")),
    "told to end at the end": ("end.await_start(); process.ignore(); terminate(); print('on')", (0, "on\n")),
}


@pytest.mark.parametrize("phase", PHASES)
def test_phases(phase: str) -> None:
    """Before and after the work of a command an interrupt shows nothing; at the very end it changes nothing.

    While it works it is raised, so that files are closed. SIGTERM waits for the start, is told once each time, and
    changes nothing at the very end.
    """
    code, expected = PHASES[phase]
    assert _code(code) == expected


def test_other_errors_in_finalizers_are_shown_as_ever() -> None:
    """Only interrupts are treated specially there."""
    code, shown = _code(FINAL.replace("KeyboardInterrupt", "ValueError('x')"))
    assert (code, "ValueError: x" in shown) == (0, True)


def test_ignored_stays_ignored() -> None:
    """In the background (`nohup`, `&`) interrupts are not for us."""
    code = "process.exit_on_interrupt()\nwith process.interruptible():\n    kill()\nkill(); print('on')"
    assert _code(code, ignored=True) == (0, "on\n")


pytestmark = pytest.mark.servers


def test_collection_is_paused_within_and_is_afterwards_as_it_was() -> None:
    """Also after an import that failed; what the caller has switched off stays off."""
    for on in (True, False):
        (gc.enable if on else gc.disable)()
        try:
            with suppress(ImportError), without_garbage_collection():
                assert not gc.isenabled()
                raise ImportError
            assert gc.isenabled() is on
        finally:
            gc.enable()


def test_a_command_runs_with_collection_on_and_skips_it_at_exit(tmp_path: Path) -> None:
    """The command itself runs with collection; when Python shuts down, no object is left to collect."""
    code = (
        "import atexit, gc, sys\n"
        "from ragwatch.offline import judge\n"
        "judge.judge_named = lambda *_: sys.exit(3 + gc.isenabled())\n"
        "atexit.register(lambda: open('frozen', 'w').write(str(gc.get_freeze_count())))\n"
        "from ragwatch.__main__ import main\n"
        "sys.argv = ['ragwatch', 'judge']\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert int((tmp_path / "frozen").read_text(encoding="utf-8")) > 0
