"""A test run ends whatever one test does, leaves no process behind, and keeps out of the account that starts it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.isolation import RUN_VARIABLE, kill, leftovers_of
from support.patience import DEADLINE

ROOT = Path(__file__).parents[2]

STUCK_AFTER = 3.0
"""Seconds; enough for tests that do nothing, on a machine that is busy."""

QUIET = "def test_{name}():\n    pass\n"
HANGS = """
import subprocess
import sys
import threading

CHILD = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)", "started-by-a-test"]

def waits_in_a_thread():
    threading.Event().wait()

def test_hangs():
    threading.Thread(target=waits_in_a_thread, name="beside", daemon=True).start()
    with subprocess.Popen(CHILD, stdout=subprocess.PIPE) as child:  # which waits for it
        child.stdout.readline()
        child.stdout.read()
"""
IN_C = """
import signal
import time

def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(600)
"""
IN_TEARDOWN = """
import threading

import pytest

@pytest.fixture
def never_ends():
    yield
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass

def test_hangs(never_ends):
    assert False
"""
DIES = """
import os

def test_dies():
    os._exit(7)
"""
INTERRUPTS = """
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ends_after(600)
WAITS = "import time; print('up', flush=True); time.sleep(600)"

def test_interrupt_reaches_a_child():
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(60) in (-signal.SIGINT, 130)

def test_home_is_not_the_account():
    assert os.environ["HOME"] != os.environ["HOME_OF_THE_ACCOUNT"]
    Path(os.environ["XDG_CACHE_HOME"], "program").mkdir(parents=True)
"""


def write_suite(folder: Path, **tests: str) -> None:
    """A small test suite with the plugin of this one, and a few files that pass."""
    (folder / "conftest.py").write_text('pytest_plugins = ("support.isolation", "support.workers", "support.stuck")\n')
    for number in range(4):
        (folder / f"test_quiet_{number}.py").write_text(QUIET.format(name=number))
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(QUIET.format(name="before") + text + QUIET.format(name="after"))


def run_suite(folder: Path, seconds: float) -> tuple[int, str]:
    """Exit code and output of that suite, run as `make test` runs this one, in a shell's background.

    So long is no test stuck.
    """
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    home = folder / "home"
    home.mkdir()
    environment |= {"PYTHONPATH": str(ROOT / "tests"), "HOME": str(home), "HOME_OF_THE_ACCOUNT": str(home)}
    environment["RAGWATCH_TEST_PATIENCE"] = str(seconds / 600)
    command = [sys.executable, "-m", "pytest", "--workers", "2", *options, str(folder)]
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:  # it starts seven workers, one after the other: minutes on a machine that is busy
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=4 * DEADLINE
        )
    finally:
        signal.signal(signal.SIGINT, handler)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.costly
def test_tests_that_hang_or_die_fail_alone(tmp_path: Path) -> None:
    """They are named, with the place of each thread and what they started, which is ended; all other tests run.

    What nothing interrupts (in C, or in a fixture that ends) costs its worker; so does a test that ends its process.
    With SIGINT ignored, as a shell does for `make test &`, what tests start can be interrupted all the same; nothing is
    written into HOME.
    """
    write_suite(tmp_path, hangs=HANGS, in_c=IN_C, in_teardown=IN_TEARDOWN, dies=DIES, interrupts=INTERRUPTS)
    code, output = run_suite(tmp_path, STUCK_AFTER)
    assert code == 1, output
    assert re.search(r"[45] failed, 16 passed", output), output
    assert f"test_hangs.py::test_hangs is stuck: it has not ended within {STUCK_AFTER:.0f} s" in output
    for place in ("in test_hangs", "in waits_in_a_thread", "Thread beside:"):
        assert place in output
    assert re.search(r"ended now:\n.*[0-9]+ \(S, [0-9.]+ s of CPU\): .*started-by-a-test", output), output
    for name in ("test_in_c.py::test_hangs", "test_in_teardown.py::test_hangs", "test_dies.py::test_dies"):
        assert f"worker crashed while running '{name}'" in output, output
    for place in ("in test_hangs", "in never_ends"):
        assert re.search(rf"Timeout \(.*\)!(\n.*)+ {place}", output), output
    assert "left behind" not in output
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.costly
def test_a_process_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL follows where SIGTERM does not help; a process that is gone already is no error."""
    monkeypatch.setattr("support.isolation.KILL_AFTER_SECONDS", 0.2)
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    environment = {**os.environ, RUN_VARIABLE: "stubborn"}
    with subprocess.Popen([sys.executable, "-c", stubborn], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        leftovers = leftovers_of("stubborn")
        assert [leftover.pid for leftover in leftovers] == [process.pid]
        kill(leftovers)
        assert process.wait(DEADLINE) == -signal.SIGKILL
    kill(leftovers)
