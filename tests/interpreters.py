"""Other Pythons on this machine, and the tests of the statistics and the embedded judge under each of them.

As a script (`make interpreters`) it gives each a virtual environment in `.venv/interpreters`, installs what those tests
need from `requirements/interpreters.lock`, and runs them. It says which Pythons were used, and which were left out and
why; only tests that fail make it fail.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "interpreters.lock"
ENVIRONMENTS = ROOT / ".venv" / "interpreters"
OLDEST = (3, 11)
TESTS = (
    "tests/unit/model",
    "tests/unit/statistics",
    "tests/unit/redaction",
    *(f"tests/unit/judges/{name}" for name in ("test_lexical*.py", "test_reading*.py")),
)
LEFT_OUT = (
    "hostile",
    "time_budget",
    "too_large_is_left",
    "huge_context",
    "covers",
    "watched_all_the_time",
    "bound_holds",
    "interval_holds",
    "a_kill_changes_nothing",
    "a_restart_changes_nothing",
    "three_tiers",
)
"""Tests that cannot differ: how long reading takes, and how often intervals hold."""
CHEAP = "not slow and not costly"
WANTED = f"not ({' or '.join(LEFT_OUT)})"

EXAMPLES = "4"
"""Of each property that Hypothesis looks at, instead of 15: each Python draws the same ones."""

_NAME = re.compile(r"python3\.\d+")
_ASK = "import json, sys; print(json.dumps([list(sys.version_info[:3]), sys.base_prefix]))"
_ANSWERS_WITHIN = 30.0  # seconds in which an interpreter says what it is, on a busy machine


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python: where it is, which version it is, and where it is installed."""

    path: Path
    version: tuple[int, ...]
    prefix: str

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} ({self.path})"


def interpreters() -> list[Interpreter]:
    """Every `python3.x` of version 3.11 or later on PATH, in the system's folders and among pyenv's, oldest first."""
    by_prefix: dict[str, Interpreter] = {}
    for path in _candidates():
        interpreter = _asked(path)
        if interpreter and interpreter.version >= OLDEST:
            by_prefix.setdefault(interpreter.prefix, interpreter)
    return sorted(by_prefix.values(), key=lambda each: each.version)


def _candidates() -> Iterator[Path]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += [Path("/usr/local/bin"), Path("/usr/bin"), *sorted(pyenv.glob("versions/*/bin"))]
    for folder in dict.fromkeys(folders):
        if folder.is_dir() and os.access(folder, os.R_OK):
            yield from sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _asked(path: Path) -> Interpreter | None:
    """What is at a path; None where it does not run (pyenv leaves such names for versions that are not chosen)."""
    try:
        command = [str(path), "-I", "-S", "-c", _ASK]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_ANSWERS_WITHIN)
        version, prefix = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Interpreter(path, tuple(version), prefix)


def _environment(interpreter: Interpreter) -> Path:
    """The Python of its virtual environment, with everything installed.

    Raises:
        subprocess.CalledProcessError: It could not be made.
    """
    folder = ENVIRONMENTS / "-".join((*map(str, interpreter.version), _digest(interpreter.prefix.encode())))
    python, stamp, wanted = folder / "bin" / "python", folder / "lock", _digest(LOCK.read_bytes())
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    venv = [str(interpreter.path), "-m", "venv", "--clear", str(folder)]
    pip = [str(python), "-m", "pip"]
    if subprocess.run(venv, capture_output=True, check=False).returncode:  # Debian's has no pip to copy: ours serves it
        subprocess.run([*venv, "--without-pip"], capture_output=True, text=True, check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = ("install", "-q", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:")
    subprocess.run([*pip, *install, "--require-hashes", "-r", str(LOCK)], capture_output=True, text=True, check=True)
    stamp.write_text(wanted)
    return python


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _tested(interpreter: Interpreter) -> tuple[bool, str]:
    """Whether the tests passed, or could not be run; and what to say of it."""
    begin = monotonic()
    try:
        python = _environment(interpreter)
    except subprocess.CalledProcessError as error:
        why = ([line for line in error.stderr.splitlines() if line.strip()] or ["it did not say why"])[-1]
        return True, f"left out: {interpreter}: its packages could not be installed: {why}"
    files = [str(path.relative_to(ROOT)) for pattern in TESTS for path in sorted(ROOT.glob(pattern))]
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", CHEAP, "-k", WANTED, *files],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "EXAMPLES": EXAMPLES},
        capture_output=True,
        text=True,
        check=False,
    )
    last = (done.stdout.splitlines() or [done.stderr.strip()])[-1].strip("= ")
    seconds = f"{monotonic() - begin:.0f} s with its installation"
    if done.returncode:
        return False, f"{done.stdout}{done.stderr}\nFAILED: {interpreter}: {last}"
    return True, f"tested: {interpreter}: {last} ({seconds})"


def ends_of_the_range(pythons: Sequence[Interpreter], own: tuple[int, int]) -> list[Interpreter]:
    """Those of the oldest and of the newest version, unless that is `own`, under which everything is tested.

    Versions between the two, and other patches of the own one (3.11.2 beside 3.11.7), are left to `make slow`.
    """
    versions = {own, *(python.version[:2] for python in pythons)}
    wanted = {min(versions), max(versions)} - {own}
    first = {python.version[:2]: python for python in reversed(pythons)}
    return [first[version] for version in sorted(wanted)]


def main() -> int:
    """Test under the oldest and the newest version, unless that is this one, or under all Pythons (`--all`)."""
    others = [python for python in interpreters() if python.prefix != sys.base_prefix]
    if "--all" not in sys.argv[1:]:
        chosen = ends_of_the_range(others, sys.version_info[:2])
        for python in others:
            if python not in chosen:
                print(f"left out: {python}: neither the oldest nor the newest version; `make slow` tests it")
        others = chosen
    if not others:
        print("no other Python of version 3.11 or later was found: PATH, the system's folders and pyenv were looked at")
    passed = True
    with ThreadPoolExecutor(2) as pool:
        for well, report in pool.map(_tested, others):
            passed = passed and well
            print(report, flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
