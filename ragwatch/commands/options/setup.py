"""Options and help of the commands for setting ragwatch up: init, config schema, completion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ragwatch.commands.options.lazy import CONFIG, OUT, Arguments, LazyCommand, argument, option


class InitArguments(Arguments):
    """Write a configuration for the log files of a service, test it, and print the scrape job for Prometheus.

    Looks at the first records of each LOG (JSONL, gzip too) as `ragwatch map` does, and asks what they do not tell:
    which field is the answer, where the state is kept, how many answers the service gives in a day, whether Claude
    judges some of them. A file that exists is not overwritten. Exit code 1 when the logs cannot be read, or a test of
    the configuration failed, 3 when they are probably read wrongly.
    """

    logs: Sequence[Path] = argument(type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="[LOG]...")
    receive: str | None = option(
        type=click.Choice(["push", "otlp"]),
        help="Instead of a log: the service sends its answers, as JSON or as traces.",
    )
    out: Path = option(type=OUT, default="ragwatch.yaml", help="File to write; - to print it only.")
    state: Path | None = option(type=CONFIG, help="Directory for the state; default: ask for it.")
    yes: bool = option(help="Ask nothing and take the defaults.")


init = LazyCommand(InitArguments, "ragwatch.commands.init:init", "init")


@click.group()
def config() -> None:
    """Work with the configuration file."""


class ConfigSchemaArguments(Arguments):
    """Print the JSON schema of the configuration file, for editors and validators.

    An editor with a YAML language server completes and checks keys if the file begins with the line
    `# yaml-language-server: $schema=ragwatch.schema.json` and the schema lies beside it.
    """


schema = LazyCommand(ConfigSchemaArguments, "ragwatch.commands.config_schema:schema", "schema")


config.add_command(schema)


class CompletionArguments(Arguments):
    """Print a script that completes the commands and options of ragwatch in a shell.

    For bash: `ragwatch completion bash > ~/.local/share/bash-completion/completions/ragwatch`. For zsh, write it to a
    file `_ragwatch` in a directory of `$fpath`; for fish, to `~/.config/fish/completions/ragwatch.fish`.
    """

    shell: str = argument(type=click.Choice(["bash", "fish", "zsh"]))


completion = LazyCommand(CompletionArguments, "ragwatch.commands.completion:completion", "completion")
