"""`--help` answers at once: it imports what knows options, and nothing that does the work."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import click
import pytest
from support.patience import DEADLINE

from ragwatch.commands import cli
from ragwatch.commands.demo import KEYS
from ragwatch.commands.options.lazy import LazyCommand, import_function
from ragwatch.commands.options.samples import FORMATS, JUDGES
from ragwatch.commands.options.serving import LLM_JUDGES
from ragwatch.formats import NAMES
from ragwatch.judges import KINDS

HEAVY = {
    *("pydantic", "rich", "starlette", "uvicorn", "prometheus_client", "apscheduler", "jinja2", "httpx"),
    *("anthropic", "yaml", "structlog", "orjson", "sqlite3", "asyncio", "numpy"),
}
COUNT = (
    "import sys; sys.argv = ['ragwatch', *sys.argv[1:]]\n"
    "from ragwatch.__main__ import main\n"
    "try: main()\n"
    "except SystemExit as ended: assert not ended.code, ended\n"
    "print(*sys.modules, file=sys.stderr)\n"
)


def commands() -> list[click.Command]:
    """Every command that does something, those of groups included."""
    groups = [each for each in cli.commands.values() if isinstance(each, click.Group)]
    every = [*cli.commands.values(), *(command for group in groups for command in group.commands.values())]
    return [each for each in every if each not in groups or each.invoke_without_command]


@pytest.mark.costly
@pytest.mark.parametrize("words", [[], ["run"], ["gate"], ["plan"], ["canary", "suggest"]], ids=" ".join)
def test_help_imports_no_library_that_does_work(words: list[str]) -> None:
    """It costs a tenth of a second instead of more than one."""
    found = subprocess.run(
        [sys.executable, "-c", COUNT, *words, "--help"],
        env={name: value for name, value in os.environ.items() if not name.startswith("COV")},  # it imports sqlite3
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert "Usage: " in found.stdout
    names = {name.partition(".")[0] for name in found.stderr.split()}
    assert names & HEAVY == set()


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_a_command_is_what_its_options_say(command: click.Command) -> None:
    """The function that is imported later takes the class that declares the options, and each of them is explained."""
    if isinstance(command, LazyCommand):
        (arguments,) = inspect.signature(import_function(command.work)).parameters.values()
        assert arguments.annotation == command.arguments.__name__
    assert all(getattr(each, "help", "") for each in command.params if each.param_type_name == "option")
    assert command.help


def test_choices_are_those_of_the_registries() -> None:
    """What help offers without importing it is what there is."""
    assert set(JUDGES) == set(KINDS)
    assert NAMES == FORMATS
    assert set(LLM_JUDGES) == set(KEYS)
