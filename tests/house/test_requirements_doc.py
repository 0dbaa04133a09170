"""docs/requirements.md is true: all 68 requirements are there, and each command prints what the page says."""

import importlib.util
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from ragwatch.commands import cli
from ragwatch.errors import ConfigError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements.md"
STAND_IN = ROOT / "docs" / "examples" / "requirements" / "stand_in.py"
RUN_BY_TESTS = {"metrics.md", "exercise.md"}
"""Pages whose examples are doctests, see tests/functional/test_typed_documents.py."""
NO_COMMAND = "none: see the page"
NUMBER = re.compile(r"(?<![\w.])\d*\.?\d+(?![\w.]*\d)")


class Row(NamedTuple):
    """A line of the table."""

    number: int  # of the requirement
    where: str  # modules, series and pages
    command: str  # what to type; empty if a page shows it
    stated: tuple[str, ...]  # numbers of the source documents, in bold on the page
    output: tuple[str, ...]  # texts that the command prints
    code: int | None  # exit code of the command; None if the page names none


class Ended(NamedTuple):
    """What a command printed, with single spaces and without the lines of tables, and its exit code."""

    text: str
    code: int


def row_of(line: str) -> Row:
    """A line of the table, read."""
    number, _, where, command, statement, output = (cell.strip() for cell in line.strip("|\n ").split(" | "))
    code = re.search(r"exit code (\d+)", output)
    return Row(
        int(number),
        where,
        "" if command == NO_COMMAND else command.strip("`"),
        tuple(re.findall(r"\*\*([\d.]+)\*\*", statement)),
        tuple(re.findall(r"`([^`]+)`", output)),
        int(code[1]) if code else None,
    )


TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [row_of(line) for line in TEXT.splitlines() if re.match(r"\| \d", line)]
SHOWN = [row for row in ROWS if row.command]


def ended(command: str, folder: Path) -> Ended:
    """Run a command of the page; files that it writes or keeps lie in `folder` and not in /tmp."""
    line, _, target = command.replace("/tmp/", f"{folder}/").partition(" > ")  # noqa: S108 - what the page writes
    words = shlex.split(line)
    assert words[0] == "ragwatch", command
    result = CliRunner().invoke(cli, words[1:], standalone_mode=False)
    if target:
        Path(target).write_text(result.stdout, encoding="utf-8")
    error = result.exception
    code = result.return_value if error is None else 2 if isinstance(error, ConfigError) else 1
    printed = f"{result.output}\n{error or ''}"
    return Ended(" ".join(re.sub(r"[\u2500-\u257f]", " ", printed).split()), code if isinstance(code, int) else 0)


def prepared(folder: Path) -> Sequence[str]:
    """Run the block of commands that the page has before its table; return those that it does not start here."""
    block = re.search(r"(?s)```sh\n(.*?)```", TEXT)
    assert block is not None
    others = []
    for line in block[1].splitlines():
        if line.startswith("ragwatch "):
            assert ended(line, folder).code in {0, 3}, line
        else:
            others.append(line)
    return others


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ended]]:
    """What each distinct command of the table printed, in the root of the repository, with the stand-in beside it."""
    spec = importlib.util.spec_from_file_location("stand_in", STAND_IN)
    assert spec is not None
    assert spec.loader is not None
    stand_in = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_in)
    folder = tmp_path_factory.mktemp("requirements")
    with stand_in.serve(0) as server, pytest.MonkeyPatch.context() as patch:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        patch.chdir(ROOT)
        patch.setenv("COLUMNS", "200")
        patch.setenv("STAND_IN_PORT", str(server.server_port))
        patch.setenv("RAGWATCH_STATE", f"{folder}/ragwatch-rollout")
        patch.setenv("RAGWATCH_LABELS", f"{folder}/ragwatch-labels")
        assert prepared(folder) == [f"python {STAND_IN.relative_to(ROOT)} &"]
        yield {command: ended(command, folder) for command in dict.fromkeys(row.command for row in SHOWN)}
        server.shutdown()
        thread.join()


def test_all_requirements_are_there() -> None:
    """Sixty-eight, in order; each has a command with its output, or a page whose examples are run by the tests."""
    assert [row.number for row in ROWS] == list(range(1, 69))
    for row in ROWS:
        if row.command:
            assert row.output, row
        else:
            assert RUN_BY_TESTS.intersection(re.findall(r"\]\(([^)]+)\)", row.where)), row


def test_what_cannot_be_had_is_said() -> None:
    """Attention weights are the one requirement that no command shows, and the line says why."""
    assert "cannot be had through an API" in next(line for line in TEXT.splitlines() if line.startswith("| 51 |"))


@pytest.mark.costly
@pytest.mark.parametrize("row", SHOWN, ids=lambda row: str(row.number))
def test_its_command_prints_it(row: Row, outputs: dict[str, Ended]) -> None:
    """Every text of the last column is printed, every number of the source is one of them, rounded."""
    text, code = outputs[row.command]
    assert [part for part in row.output if " ".join(part.split()) not in text] == [], text[:3000]
    assert row.code in {None, code}
    printed = [float(number) for part in row.output for number in NUMBER.findall(part)]
    for stated in row.stated:
        digits = len(stated.partition(".")[2])
        assert float(stated) in {round(number, digits) for number in printed}, (stated, printed)
