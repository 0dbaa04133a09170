"""The real daemon with an LLM judge that asks the loopback server."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from functional.daemon import RagwatchProcess, record, write_config
from loopback.process import LoopbackProcess
from support.patience import pauses

from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore

PENDING = "ragwatch_samples_pending"
PRICES = {"input": 10.0, "output": 50.0}  # dear: a hundred calls are a dollar


def an_llm(server: LoopbackProcess, **options: Any) -> dict[str, Any]:
    """Claude at the loopback server, as it stands in a configuration."""
    return {"name": "claude", "kind": "claude", "base_url": server.address, "api_key": server.key, **options}


def configure(folder: Path, *judges: dict[str, Any], **sections: str) -> Path:
    """A configuration with these judges."""
    return write_config(folder, judges=json.dumps(judges), **sections)


def write_log(folder: Path, lines: Sequence[str], name: str = "rag.jsonl") -> None:
    """A log for the daemon of `write_config`."""
    (folder / "log").mkdir(exist_ok=True)
    (folder / "log" / name).write_text("".join(f"{line}\n" for line in lines))


def records(count: int, **changes: object) -> list[str]:
    """Log lines about the mill."""
    return [record(number, **changes) for number in range(count)]


def verdicts(folder: Path) -> list[dict[str, Any]]:
    """All stored verdicts, once the daemon has ended."""
    with closing(SqliteStore(folder / "state")) as store:
        return [dict(each.line) for each in store.find(Query(limit=100_000))]


def by_label(series: dict[str, float], name: str, label: str) -> dict[str, float]:
    """Values of one series, added up by one label."""
    found: dict[str, float] = {}
    for key, value in series.items():
        if key.partition("{")[0] == name:
            word = key.partition(f'{label}="')[2].partition('"')[0]
            found[word] = found.get(word, 0.0) + value
    return found


def wait_for(ragwatch: RagwatchProcess, values: dict[str, float], *, named: str | None = None) -> dict[str, float]:
    """Scrape until these series have these values, and another one is there."""
    series: dict[str, float] = {}
    for _ in pauses():
        series = ragwatch.series()
        if all(series.get(name) == value for name, value in values.items()) and (named is None or named in series):
            return series
    raise AssertionError({name: series.get(name) for name in values})
