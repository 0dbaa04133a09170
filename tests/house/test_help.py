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


def commands() -> list[tuple[list[str], click.Command]]:
    """Every command with its words, those of groups included."""
    inner = [
        ([name, each], command.commands[each])
        for name, command in cli.commands.items()
        if isinstance(command, click.Group)
        for each in command.commands
    ]
    outer = [
        ([name], command)
        for name, command in cli.commands.items()
        if not isinstance(command, click.Group) or command.invoke_without_command  # else it only has commands
    ]
    return [*outer, *inner]


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


@pytest.mark.parametrize(
    ("words", "command"), commands(), ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_a_command_is_what_its_options_say(words: list[str], command: click.Command) -> None:
    """The function that is imported later takes exactly the declared options, and each of them is explained."""
    place = command.work if isinstance(command, LazyCommand) else f"ragwatch.commands.{words[-1]}:{words[-1]}"
    assert {each.name for each in command.params} == set(inspect.signature(import_function(place)).parameters)
    assert all(getattr(each, "help", "") for each in command.params if each.param_type_name == "option")
    assert command.help


def test_choices_are_those_of_the_registries() -> None:
    """What help offers without importing it is what there is."""
    assert set(JUDGES) == set(KINDS)
    assert NAMES == FORMATS
    assert set(LLM_JUDGES) == set(KEYS)
