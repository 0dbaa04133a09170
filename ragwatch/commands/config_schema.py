"""`ragwatch config schema`: prints the JSON schema of the configuration file."""

from __future__ import annotations

import json

import click

from ragwatch.commands.options.administration import ConfigSchemaArguments
from ragwatch.config.schema import json_schema


def schema(_: ConfigSchemaArguments) -> int:
    """Print the JSON schema of the configuration file. Returns 0."""
    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0
