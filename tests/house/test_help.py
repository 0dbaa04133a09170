"""`--help` answers at once: it imports what knows options, and nothing that does the work."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest
from support.patience import DEADLINE

from ragwatch.commands import GROUPS, cli
from ragwatch.commands.demo import KEYS
from ragwatch.formats import NAMES
from ragwatch.judges import KINDS
from ragwatch.terminal.options import Arguments, import_function
from ragwatch.terminal.options.administration import LLM_JUDGES
from ragwatch.terminal.options.offline import FORMATS, JUDGES

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


def test_every_command_is_in_a_group_of_the_help() -> None:
    """A command without a heading would be listed nowhere."""
    assert set(cli.commands) == {command.name for commands in GROUPS.values() for command in commands}


@pytest.mark.parametrize("arguments", Arguments.__subclasses__(), ids=lambda arguments: arguments.__name__)
def test_a_command_is_what_its_options_say(arguments: type[Arguments]) -> None:
    """The function that is imported later takes the class that declares the options, and each of them is explained."""
    (taken,) = inspect.signature(import_function(arguments.work)).parameters.values()
    assert taken.annotation == arguments.__name__
    assert all(getattr(each, "help", "") for each in arguments.parameters() if each.param_type_name == "option")
    assert arguments.__doc__


def test_choices_are_those_of_the_registries() -> None:
    """What help offers without importing it is what there is."""
    assert set(JUDGES) == set(KINDS)
    assert NAMES == FORMATS
    assert set(LLM_JUDGES) == set(KEYS)
