"""The command line, run in this process: what a command prints and returns, what it refuses, and files for it."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ragwatch.commands import cli
from ragwatch.commands.check import check_all
from ragwatch.commands.check_settings import Finding
from ragwatch.config import parse
from ragwatch.errors import ConfigError


def command(*words: object, said: str = "") -> Result:
    """The result of a command, with what is typed; an error that it raises is in it."""
    return CliRunner().invoke(cli, list(map(str, words)), input=said, standalone_mode=False)


def refused(result: Result, kind: type[Exception] = ConfigError) -> str:
    """The message with which a command was refused."""
    assert isinstance(result.exception, kind), (result.exception, result.output)
    return str(result.exception)


def configured(folder: Path, **sections: Any) -> Path:
    """A configuration with these sections, whose state is in the folder, and whose source has no file."""
    sources = [{"kind": "tail", "name": "app", "path": "/nowhere/*.log"}]
    path = folder / "ragwatch.yaml"
    path.write_text(json.dumps({"state": f"{folder}/state", "sources": sources} | sections))
    return path


def findings(folder: Path, **sections: Any) -> dict[str, Finding]:
    """What `ragwatch check` says of a configuration with these sections, by key."""
    sources = [{"kind": "push", "name": "app"}]
    raw = {"state": str(folder / "state"), "web": {"listen": "127.0.0.1:0"}, "sources": sources} | sections
    return {one.subject: one for one in check_all(parse(raw, folder=folder))}


def jsonl(*rows: object) -> str:
    """Rows as JSON lines; a text is a line as it is."""
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)


def log_of(path: Path, *rows: object) -> Path:
    """A file of rows as JSON lines."""
    path.write_text(jsonl(*rows), encoding="utf-8")
    return path
