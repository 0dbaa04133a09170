"""Runs the command line and converts every error to an exit code and at most a few lines on standard error.

Errors caused by the user or the host are shown as one line each. Any other error is a bug of ragwatch: it is logged
with its traceback, and a message asks the user to report it.
"""

import sys
import traceback
from collections.abc import Iterator

import click

from ragwatch import __version__
from ragwatch.commands import cli
from ragwatch.errors import ConfigError, RagwatchError
from ragwatch.process import INTERRUPTED
from ragwatch.terminal import output
from ragwatch.terminal.output import printable

OK, FAILURE, USAGE = 0, 1, 2
INSTALL_ALL = (
    "`make run` installs only what the demo needs; run `make setup` in the checkout, or `pip install ragwatch-exporter`"
)
_PRESENT = {"", "ragwatch", *sys.stdlib_module_names}  # where one of these is missing, that is a bug
_PYTHON = sys.version.split()[0]


def run() -> int:
    """Run the command line with streams that can be written to, and flush its output. Returns the exit code."""
    output.prepare()
    code = _run()
    failure = output.finish()
    if failure is None:
        return code
    if message := _message(failure):
        _print_error(message)
    return code or FAILURE  # output that could not be written must not count as success


def _run() -> int:
    try:
        return _exit_code(cli.main(standalone_mode=False))
    except SystemExit as error:  # click and rich exit this way when the reader of our output has gone away
        output.discard_output()
        return _exit_code(error.code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - every error ends here; bugs are logged with their traceback
        return _handle(error)


def _exit_code(value: object) -> int:
    return value if isinstance(value, int) else OK


def _handle(error: BaseException) -> int:
    """Print an error, or each distinct error of an exception group. Returns the exit code."""
    errors = list(_flatten(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in errors):
        return INTERRUPTED
    if any(output.is_output_error(leaf) for leaf in errors):
        output.discard_output()  # flushing the rest of the buffers would fail again
    messages = dict.fromkeys(_message(leaf) for leaf in errors)
    if None in messages:
        _report_bug(error)
        return FAILURE
    for message in messages:
        if message:
            _print_error(message)
    return USAGE if any(isinstance(leaf, ConfigError | ModuleNotFoundError) for leaf in errors) else FAILURE


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _flatten(member)
    else:
        yield error


def _message(error: BaseException) -> str | None:  # noqa: PLR0911 - one for each kind of error
    """The message for an error of the user or the host; empty when the reader has gone away, None for a bug."""
    if isinstance(error, RagwatchError):
        return str(error)
    if output.is_reader_gone(error):
        return ""
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        filename = _filename(error)
        return reason if filename is None else f"{filename}: {reason}"
    if isinstance(error, ModuleNotFoundError) and (name := (error.name or "").partition(".")[0]) not in _PRESENT:
        return f"the Python module `{name}` is not installed: {INSTALL_ALL}"
    if isinstance(error, MemoryError):
        return "out of memory: give this process more memory, or use smaller files; the stored data is not affected"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply; flatten it"
    return None


def _filename(error: BaseException | None) -> object:
    """The file name of an OSError or of an error in its context: a failed close follows a failed write."""
    while error is not None:
        if isinstance(error, OSError) and error.filename is not None:
            return error.filename
        error = error.__context__
    return None


def _print_error(message: str) -> None:
    click.echo(f"ragwatch: {printable(message)}", err=True)


def _report_bug(error: BaseException) -> None:
    if "structlog" in sys.modules and sys.modules["structlog"].is_configured():
        log = sys.modules["structlog"].get_logger()
        log.critical("internal error", version=__version__, python=_PYTHON, exc_info=error)
    else:
        traceback.print_exception(error)
    click.echo(
        f"ragwatch {__version__} failed with an internal error (Python {_PYTHON}); please report it with the log above",
        err=True,
    )
