"""The command line: one module per command, and `options` with their options and help.

A command's module is imported only when the command runs.
"""

from __future__ import annotations

import click

from ragwatch import __version__
from ragwatch.terminal.options import GROUPS, SUMMARIES


class _Grouped(click.Group):
    """A group that lists its commands under headings."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature of click
        """Return the names in the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        """Write one list for each heading."""
        for title, commands in GROUPS.items():
            names = (str(command.name) for command in commands)
            with formatter.section(title):
                formatter.write_dl([(name, SUMMARIES[name]) for name in names if name in SUMMARIES])


@click.group(cls=_Grouped, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ragwatch")
def cli() -> None:
    """Monitor the answer quality of a RAG service in production and export it to Prometheus.

    Exit codes: 0 success, 1 the check failed or an error occurred, 2 usage or configuration error, 3 not enough data,
    130 interrupted (Ctrl-C). Those of `rollout` are in its help. If the reader of the output goes away (`| head`), the
    code is 1.
    """


for commands in GROUPS.values():
    for command in commands:
        cli.add_command(command)
