"""The options of commands: fields of a class, from which click commands are made.

The implementation of a command is imported when it runs: `--help` imports none, so that it is fast.
Types are read as text, so that a file which declares options keeps `from __future__ import annotations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, dataclass_transform

import click

from ragwatch.process import TERMINATION, interruptible, without_garbage_collection

CONFIG = click.Path(path_type=Path)
OUT = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
INPUT = click.Path(path_type=Path, exists=True, dir_okay=False)


class IntegerRange(click.IntRange):
    """A range of whole numbers, whose errors say "integer" and not "integer range"."""

    name = "integer"


class FiniteRange(click.FloatRange):
    """A range of numbers that holds neither nan nor inf: `click.FloatRange` lets nan through every bound."""

    name = "number"

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See `click.ParamType.convert`."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number; write one such as 0.5", param, ctx)
        return number


def option(*flags: str, **settings: Any) -> Any:  # noqa: ANN401 - a field of any type, and settings of `click.Option`
    """Declare a field as an option; without flags, its name is the flag.

    Its type says whether the option is required, takes no value (bool), a file (Path), or may be given several times
    (Sequence).
    """

    def declare(name: str, kind: str) -> click.Option:
        takes_none, repeats, has_default = kind == "bool", kind.startswith("Sequence["), "default" in settings
        required = not (takes_none or repeats or has_default or kind.endswith("| None"))
        says = {"is_flag": takes_none, "multiple": repeats, "required": required, "show_default": has_default}
        implied: dict[str, Any] = {name: True for name, holds in says.items() if holds}  # False would change others
        if kind in ("Path", "Path | None"):
            implied["type"] = OUT
        return click.Option([*(flags or [f"--{name.replace('_', '-')}"]), name], **implied | settings)

    return declare


def argument(**settings: Any) -> Any:  # noqa: ANN401 - a field of any type, and settings of `click.Argument`
    """Declare a field as a positional argument; its type says whether it is required, or repeats (Sequence)."""

    def declare(name: str, kind: str) -> click.Argument:
        repeats = kind.startswith("Sequence[")
        implied = {"nargs": -1 if repeats else 1, "required": not (repeats or kind.endswith("| None"))}
        return click.Argument([name], **implied | settings)

    return declare


CONFIG_FILES = (Path("ragwatch.yaml"), Path("/etc/ragwatch/ragwatch.yaml"))


def usual_config() -> Path | None:
    """Return the first of the usual configuration files that exists; None if none does."""
    return next((path for path in CONFIG_FILES if path.is_file()), None)


def config_file(ctx: click.Context, _: click.Parameter | None, value: Path | None) -> Path:
    """Return the configuration file that is given, or else the usual one; a usage error if there is none."""
    path = value or usual_config()
    if path is None:
        here, system = CONFIG_FILES
        raise click.UsageError(
            f"Missing option '--config': there is no {here} here and no {system}; give the file, or write one with "
            "`ragwatch init`.",
            ctx,
        )
    return path


CONFIG_FILE = option(
    "--config",
    type=CONFIG,
    required=False,
    callback=config_file,
    help="Configuration file (YAML); default: ragwatch.yaml in this directory, else /etc/ragwatch/ragwatch.yaml.",
)
URL = option(metavar="URL", help="Address of the running ragwatch; default: that of the configuration.")
TOKEN_FILE = option(help="File of the bearer token; default: $RAGWATCH_TOKEN_FILE, or the token in $RAGWATCH_TOKEN.")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, argument))
class Arguments:
    """Base of the arguments of a command: each field is an option or an argument, the docstring is the help.

    A command that does something names the function that does it.
    """

    work = ""  # `module:name` of the function, which takes the arguments and returns the exit code
    first_line = ""  # shown on standard error before the import of the module, which takes a second or more

    def __init_subclass__(cls, work: str = "", first_line: str = "") -> None:
        """Take what the class statement names."""
        cls.work, cls.first_line = work, first_line

    def __init__(self, **values: object) -> None:
        """Take the value of each field."""
        vars(self).update(values)

    @classmethod
    def parameters(cls) -> list[click.Parameter]:
        """Return the options and arguments that the fields declare."""
        return [getattr(cls, name)(name, kind) for name, kind in cls.__annotations__.items()]


def import_function(path: str) -> Callable[..., object]:
    """Import and return the function named by `module:name`."""
    module, _, name = path.partition(":")
    function: Callable[..., object] = getattr(import_module(module), name)
    return function


def import_and_call(arguments: type[Arguments], values: Mapping[str, object]) -> object:
    """Import a command's function and call it; Ctrl-C raises KeyboardInterrupt meanwhile. Returns the exit code.

    Errors alone are logged, unless the command says otherwise.
    """
    if arguments.first_line:
        click.echo(arguments.first_line, err=True)
    with without_garbage_collection():
        function = import_function(arguments.work)
        import_function("ragwatch.telemetry:configure_logging")("error")
    if TERMINATION.requested:  # while modules were imported: nothing has begun
        return 0
    with interruptible():
        return function(arguments(**values))


class LazyCommand(click.Command):
    """A click command whose implementation is imported when it runs."""

    def __init__(self, name: str, arguments: type[Arguments]) -> None:
        super().__init__(name, callback=self._run, params=arguments.parameters(), help=arguments.__doc__)
        self.arguments = arguments

    def _run(self, **values: object) -> object:
        return import_and_call(self.arguments, values)
