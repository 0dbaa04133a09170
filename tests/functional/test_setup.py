"""`make run` installs what the demo needs, and nothing else; every Python that ragwatch admits reads alike."""

import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from interpreters import Interpreter, interpreters
from packaging.requirements import Requirement
from support.patience import DEADLINE
from support.readings import BARE, FIGURES

ROOT = Path(__file__).parents[2]
MOST_PACKAGES = 30
OTLP = "sources: [{kind: otlp, name: app}]\n"
CLAUDE = (
    "sources: [{kind: tail, name: app, path: log}]\n"
    "judges: [{name: llm, kind: claude, api_key: k, budget: {usd_per_hour: 1}}]\n"
)


def locked(name: str) -> list[Requirement]:
    """The packages of a lock for this Python and this system."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    lines = map(Requirement, re.findall(r"(?m)^\w.*==.*(?= \\$)", text))
    return [line for line in lines if line.marker is None or line.marker.evaluate()]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the packages of the demo's lock: those of this one, and no others."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for line in locked("demo"):
        installed = distribution(line.name)
        for top in {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(str(installed.locate_file(top)))
    return folder / "bin" / "python"


def _ragwatch(python: Path, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{RUN}", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)


RUN = "from ragwatch.__main__ import main; main()"


def test_the_demo_runs_with_what_its_lock_names(python: Path) -> None:
    """Its first table is there, and nothing that it imports is missing."""
    done = _ragwatch(python, "demo", "--port", "0", "--seconds", "8")
    assert done.returncode == 0, done.stderr
    assert "faithfulness" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("config", "module"), [(CLAUDE, "anthropic"), (OTLP, "opentelemetry")], ids=["claude", "otlp"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_what_the_demo_does_not_need_says_how_to_install_it(
    python: Path, tmp_path: Path, config: str, module: str, command: str
) -> None:
    """One line names the module and the command that installs it; the code is that of a wrong configuration."""
    path = tmp_path / "ragwatch.yaml"
    path.write_text(f"state: {tmp_path}/state\nweb: {{listen: '127.0.0.1:0'}}\n{config}")
    if command == "check" and module == "opentelemetry":
        pytest.skip("`check` starts no source that receives")
    done = _ragwatch(python, command, "--config", path)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ragwatch:")]
    assert f"`{module}` is not installed" in line
    assert "`make setup`" in line
    assert "Traceback" not in done.stderr


def test_the_lock_is_small_and_agrees_with_that_of_the_tests() -> None:
    """So `make test` after `make run` adds packages, and `make run` after `make test` changes none."""
    demo, dev = ({str(line.name): str(line.specifier) for line in locked(name)} for name in ("demo", "dev"))
    assert len(demo) <= MOST_PACKAGES
    assert demo.items() <= dev.items()


@pytest.mark.parametrize(
    ("target", "allowed"),
    [("run", {"run"}), ("wheel", {"build"}), ("docs", {"docs"}), ("sbom", {"deploy"}), ("lock", set())],
)
def test_a_target_sets_up_only_what_it_uses(tmp_path: Path, target: str, allowed: set[str]) -> None:
    """In a clean checkout, by what `make` says that it would do."""
    for name in ("Makefile", "tools", "requirements", "tests", "bench", "docs", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(re.findall(r"tools/setup\.sh (\S+)", done.stdout)) == allowed


def test_a_submission_is_tested_under_the_python_of_the_distribution(tmp_path: Path) -> None:
    """`.ci/run` says which Python it took, passes it on, and removes an environment that another one made."""
    own = Path("/usr/bin/python3")
    if (
        not own.exists()
        or subprocess.run([own, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode
    ):
        pytest.skip("needs Python 3.11 or newer at /usr/bin/python3")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text((ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    foreign = tmp_path / ".venv" / "bin" / "python"
    foreign.write_text("#!/bin/sh\necho elsewhere\n")
    foreign.chmod(0o755)
    (tmp_path / "Makefile").write_text("test:\n\t@echo made with $(PYTHON)\n")
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHON" and not name.startswith("MAKE")
    }
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("tests run under Python 3.")
    assert f"made with {own}" in done.stdout
    assert not foreign.exists()


PYTHONS = interpreters()


@pytest.mark.parametrize("python", PYTHONS, ids=map(str, PYTHONS))
def test_reads_and_redacts_alike(python: Interpreter) -> None:
    """Claims, features, scores and redacted texts are those that are pinned, whatever order its sets have."""
    command = [str(python.path), "-I", "-S", "-B", "-c", BARE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.stderr == ""
    lines, pinned = done.stdout.splitlines(), FIGURES.read_text().splitlines()
    assert [pair for pair in zip(lines, pinned, strict=True) if pair[0] != pair[1]] == []
