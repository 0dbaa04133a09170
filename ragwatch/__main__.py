"""The door: one place where an error becomes an exit code."""

from __future__ import annotations

import sys

import click

from ragwatch.commands import cli
from ragwatch.commands.terminal import plain
from ragwatch.errors import ConfigError, RagwatchError

BAD, USAGE, INTERRUPTED = 1, 2, 130


def main() -> None:
    """Run the command line: 0 ok, 1 the thing checked is bad, 2 usage or configuration, 3 not enough data."""
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = INTERRUPTED
    except ConfigError as error:
        click.echo(f"ragwatch: {plain(str(error))}", err=True)
        code = USAGE
    except RagwatchError as error:
        click.echo(f"ragwatch: {plain(str(error))}", err=True)
        code = BAD
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        code = 0
    sys.exit(code)


if __name__ == "__main__":
    main()
