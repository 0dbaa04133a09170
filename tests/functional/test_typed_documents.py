"""What README and docs say to type is typed: every line of shell and every Python block, as a reader would.

A line that starts a program of its own, needs a key, root, a server or a network is not typed; `NOT_TYPED` says why.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from support.patience import DEADLINE
from support.programs import free_port

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "examples").glob("*/*.md"))
)
SHELLS = frozenset({"sh", "bash", "shell", "console"})
COMMANDS = frozenset(
    {"curl", "export", "make", "pip", "pipx", "python", "python3", "ragwatch", "(umask", "cd", "git"}
) | {
    *("/opt/ragwatch/bin/pip", "amtool", "auditctl", "ausearch", "cp", "docker", "helm", "kubectl"),
    *("psql", "sqlite3", "systemctl", "uv"),
}
NETWORK, DAEMON, SERVER = "installs from a network", "starts a daemon", "needs a server or root"
ELSEWHERE = "typed by tests/house/test_requirements_doc.py"
NOT_TYPED = {
    "make ": "a target of the Makefile, which CI and tests/house/test_reference.py know",
    "pip install": NETWORK,
    "pipx install": NETWORK,
    "python3 -m venv": "the next line installs from a network",
    "/opt/ragwatch/bin/pip install": NETWORK,
    "docker ": SERVER,
    "systemctl ": SERVER,
    "sqlite3 ": SERVER,
    "cp -p /var/lib": SERVER,
    "auditctl ": SERVER,
    "ausearch ": SERVER,
    "psql ": SERVER,
    "ragwatch store ": "needs a PostgreSQL server",
    "amtool silence": "needs an Alertmanager, see tests/functional/oncall",
    "ragwatch demo": DAEMON,
    "ragwatch run --config ragwatch.yaml": DAEMON,
    "ragwatch detector fetch": NETWORK,
    "ragwatch status": "asks a daemon that runs",
    "python3 -c 'import csv": "reads a log in CSV that the reader has",
    "python3 -c 'import json,sqlite3": "reads a log in SQLite that the reader has",
    "python3 -c 'import json,shlex": "reads a log in logfmt that the reader has",
    "python3 -c 'import ast,json": "reads a log of printed dicts that the reader has",
    "python docs/examples/requirements/stand_in.py": ELSEWHERE,
}
NOT_TYPED_PAGES = {"docs/requirements.md": ELSEWHERE}


class Line(NamedTuple):
    """A line of shell."""

    page: str  # its page
    text: str  # the line without its comment; lines that a backslash continues are one
    code: int  # exit code that its comment names, else 0


def blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """Blocks of code of a page, each with the language of its fence; empty for an indented block."""
    block: list[str] = []
    fence: str | None = None
    after_blank = True
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        mark = re.match(r" *```(\w*)", line)
        if mark:
            if block:
                yield fence or "", block
            fence, block = (mark[1] or "text", []) if fence is None else (None, [])
        elif fence is not None or (line.startswith("    ") and (block or after_blank)):
            block.append(line)
        elif line.strip() and block:
            yield "", block
            block = []
        after_blank = not line.strip()


def shell_lines(page: str) -> Iterator[Line]:
    """Lines of shell of a page."""
    for language, block in blocks(page):
        if language not in SHELLS and (language or block[0].split()[0] not in COMMANDS):
            continue
        for line in "\n".join(block).replace("\\\n", " ").splitlines():
            text, _, comment = line.strip().partition("  #")
            if text.split() and text.split()[0] in COMMANDS:
                code = re.search(r"exit code (\d+)", comment)
                yield Line(page, " ".join(text.split()), int(code[1]) if code else 0)


ALL = [line for page in PAGES for line in shell_lines(page)]


def reason(line: Line) -> str | None:
    """Why a line is not typed here; None if it is."""
    if line.page in NOT_TYPED_PAGES:
        return NOT_TYPED_PAGES[line.page]
    return next((why for start, why in NOT_TYPED.items() if line.text.startswith(start)), None)


class Desk(NamedTuple):
    """Where a reader types: a folder with the log that pages name, and a daemon that receives answers."""

    folder: Path
    address: str
    daemon: RagwatchProcess

    def at(self, page: str) -> Path:
        """A folder to type the lines of a page in, with the configuration of the daemon unless the page writes one."""
        place = self.folder / page.replace("/", "-")
        if not place.exists():
            place.mkdir()
            (place / "docs").symlink_to(ROOT / "docs")
            if not any(line.page == page and line.text.startswith("ragwatch init") for line in ALL):
                shutil.copy(self.folder / "watched" / "ragwatch.yaml", place)
        return place

    def type(self, line: Line) -> subprocess.CompletedProcess[str]:
        """Type a line; places that every reader has to replace are replaced."""
        folders = dict.fromkeys(("/var/log/rag/", "/tmp/", "/data/", "/etc/ragwatch/"), f"{self.folder}/")  # noqa: S108
        own = folders | dict.fromkeys(("http://127.0.0.1:10477", "https://ragwatch.example.org"), self.address)
        text = re.sub("|".join(own), lambda match: own[match[0]], line.text)
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "TOKEN": "none"}
        environment |= {"PYTHONPATH": str(ROOT), "RAGWATCH_STATE": f"{self.folder}/ragwatch-rollout"}
        command = ["bash", "-o", "pipefail", "-c", text]
        given = {"cwd": self.at(line.page), "env": environment, "input": "\n" * 20, "timeout": 3 * DEADLINE}
        return subprocess.run(command, check=False, capture_output=True, text=True, **given)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The desk, with what pages take for granted."""
    folder = tmp_path_factory.mktemp("desk")
    persons = record(40, id="REQUEST-ID"), record(41, metadata={"user": {"id": "42"}})
    (folder / "app.jsonl").write_text("\n".join([*map(record, range(40)), *persons, ""]))
    (folder / "bin").mkdir()
    program = folder / "bin" / "ragwatch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ragwatch "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    watched = folder / "watched"
    watched.mkdir()
    address = f"http://127.0.0.1:{free_port()}"
    sources = f"[{{kind: tail, name: app, path: '{folder}/app.jsonl', start: beginning}}, {{kind: push, name: sent}}]"
    config = write_config(watched, web=f"{{listen: '{address.removeprefix('http://')}'}}", sources=sources)
    with RagwatchProcess(config) as daemon:
        daemon.wait_until_serving()
        daemon.wait_for('ragwatch_samples_judged_total{judge="embedded",route="search"}', 42.0)
        yield Desk(folder, address, daemon)


def test_every_line_is_typed_or_has_a_reason() -> None:
    """No reason is left over; most of the lines of `ragwatch` are typed."""
    unused = [start for start in NOT_TYPED if not any(line.text.startswith(start) for line in ALL)]
    assert unused == []
    own = [line for line in ALL if line.text.startswith(("ragwatch ", "curl ")) and line.page not in NOT_TYPED_PAGES]
    typed = [line for line in own if reason(line) is None]
    assert (len(typed) >= 15, len(typed) / len(own) > 0.8) == (True, True)


@pytest.mark.costly
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(line.page == page and not reason(line) for line in ALL)]
)
def test_what_a_page_says_to_type(page: str, desk: Desk) -> None:
    """Each line ends as the page says: with 0, or with the exit code of its comment."""
    for line in ALL:
        if line.page == page and reason(line) is None:
            ended = desk.type(line)
            assert ended.returncode == line.code, f"{line.text}\n{ended.stdout[-1500:]}\n{ended.stderr[-1500:]}"


def test_python_of_a_service_that_sends(desk: Desk) -> None:
    """The block runs in a service that has a question, documents and an answer, and the daemon receives the answer."""
    (code,) = ("\n".join(block) for language, block in blocks("docs/sending.md") if language == "python")
    names = {"question": "Who made it?", "answer": "Ann made it.", "documents": [{"id": "d1", "text": "Ann made it."}]}
    exec(code.replace("http://127.0.0.1:10477", desk.address), names)  # noqa: S102 - what the page says
    assert names["log"].flush(DEADLINE)  # type: ignore[attr-defined]  # an AnswerLog
    desk.daemon.wait_for('ragwatch_samples_judged_total{judge="embedded",route="support"}', 1.0)


@pytest.mark.costly
@pytest.mark.parametrize("page", ["docs/exercise.md", "docs/metrics.md"])
def test_examples_of_python(page: str) -> None:
    """Nothing but Python and a checkout is needed."""
    command = [sys.executable, "-m", "doctest", page]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10 * DEADLINE, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")
    others = [other for other in PAGES if other not in NOT_TYPED_PAGES and ">>>" in (ROOT / other).read_text()]
    assert others == ["docs/exercise.md", "docs/metrics.md"]
