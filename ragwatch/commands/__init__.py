"""Commands: one file a verb, and `verbs` with their options and help. A verb is imported when it runs."""

from __future__ import annotations

import click

from ragwatch import __version__
from ragwatch.commands.verbs import VERBS


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ragwatch")
def cli() -> None:
    """Watch live RAG traffic and export honest gauges of answer quality to Prometheus.

    Exit codes: 0 ok, 1 the thing checked is bad or something failed, 2 usage or configuration, 3 not enough data,
    130 interrupted (Ctrl-C). Where the reader of the output goes away (`| head`), the code is 1.
    """


for verb in VERBS:
    cli.add_command(verb)
