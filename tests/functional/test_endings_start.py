"""SIGTERM at any moment of the start of `run` and `demo` ends it with 0 or with the start's own error."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, append_records, write_config
from functional.endings import Ended, fault_of
from functional.forked import handles
from support.patience import DEADLINE

STATE_FILES = {"ragwatch.db", "ragwatch.tmp", "ragwatch.lock", "ragwatch.secret", "ragwatch.state"}
COMMANDS = {
    "module": (sys.executable, "-m", "ragwatch"),
    "script": (sys.executable, "-c", "from ragwatch.__main__ import main; main()"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log to watch, and a directory for temporary files."""
    write_config(tmp_path)
    append_records(tmp_path, range(20))
    (tmp_path / "tmp").mkdir()
    return tmp_path


def _terminated(command: Sequence[str], folder: Path, after: float, *, handled: bool = True) -> tuple[Ended, bool]:
    """End a command so many seconds after it handles SIGTERM, or after its start; whether it handled it then."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
    ) as process:
        try:
            end = time.monotonic() + DEADLINE
            while (
                handled
                and process.poll() is None
                and time.monotonic() < end
                and not handles(process.pid, signal.SIGTERM)
            ):
                time.sleep(0.001)
            time.sleep(after)
            ready = process.poll() is not None or handles(process.pid, signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=DEADLINE)
        finally:
            process.kill()
    return Ended(tuple(command), process.returncode, out, err), ready


def _ends_well(command: Sequence[str], folder: Path, after: float, codes: set[int]) -> None:
    ended, _ = _terminated(command, folder, after)
    assert fault_of(ended, codes) is None, f"after {after}: {ended.told}"
    assert list((folder / "tmp").iterdir()) == []


def _run(how: str, folder: Path) -> tuple[str, ...]:
    return (*COMMANDS[how], "run", "--config", str(folder / "ragwatch.yaml"))


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([0.0, 0.8], id="a few"),
        pytest.param([0.02 * number for number in range(150)], id="20 ms apart", marks=pytest.mark.slow),
    ],
)
def test_a_daemon_that_is_terminated_during_its_start(folder: Path, moments: Sequence[float]) -> None:
    """Importing, opening its state, binding, serving: the exit code is 0, and the next start opens what is there.

    Each time with a new state, which the last one of them finally opens.
    """
    for number, after in enumerate(moments):
        config = write_config(folder, state=f"{folder}/state-{number}")
        _ends_well(_run("module" if number % 2 else "script", folder), folder, after, {0})
        state = folder / f"state-{number}"
        assert not state.exists() or {path.name for path in state.iterdir()} <= STATE_FILES
        with RagwatchProcess(config) as ragwatch:
            ragwatch.wait_until_serving()
            ragwatch.signal(signal.SIGTERM)
            assert ragwatch.end() == 0


@pytest.mark.parametrize("how", COMMANDS)
def test_before_it_can_handle_the_signal_nothing_has_begun(folder: Path, how: str) -> None:
    """While Python itself starts, the system ends the process; from the first lines of ragwatch on the code is 0."""
    for after in (0.0, 0.01, 0.02, 0.04, 0.08):
        ended, handled = _terminated(_run(how, folder), folder, after, handled=False)
        assert ended.code == 0 or (ended.code == -signal.SIGTERM and not handled), ended.told
        assert not (folder / "state").exists() or handled


@pytest.mark.parametrize("after", [0.0, 1.2, *(pytest.param(late, marks=pytest.mark.slow) for late in (0.5, 0.8, 2.0))])
def test_a_demo_that_is_terminated_during_its_start(folder: Path, after: float) -> None:
    """Its temporary folder is removed."""
    _ends_well((*COMMANDS["module"], "demo", "--port", "0"), folder, after, {0})


def test_the_error_of_a_start_stays_its_exit_code(folder: Path) -> None:
    """An address in use is code 2, unless the signal came before it was noticed."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        write_config(folder, web=f"{{listen: '127.0.0.1:{other.getsockname()[1]}'}}")
        _ends_well(_run("module", folder), folder, 1.2, {0, 2})


SWALLOWS = """import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt as error:
    raise RuntimeError("Error building a validator") from error
"""


def test_an_import_cannot_swallow_an_interrupt(tmp_path: Path) -> None:
    """Ctrl-C while the SDK of `mcp` is imported ends the command with 130: its classes turn exceptions into errors."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text(SWALLOWS)
    ended = subprocess.run(
        (sys.executable, "-m", "ragwatch", "mcp", "--url", "http://127.0.0.1:9"),
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path[1:]))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
