"""Lists what may hold the texts of a person outside of the database, where `ragwatch forget` does not erase."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from ragwatch.config import Config
from ragwatch.config.text import load_text
from ragwatch.errors import ConfigError
from ragwatch.ports.capabilities import HasLogFiles

OWN_FILES = ("ragwatch.db", "ragwatch.db-wal", "ragwatch.db-shm", "ragwatch.lock", "ragwatch.state")
MAX_SEARCHED_BYTES = 64 << 20


def copies_elsewhere(state: Path, config: Config | None, path: Path | None, texts: Collection[str]) -> Iterator[str]:
    """Yield one line for each place: files beside the database, logs, suites, anchors, providers, backups.

    Args:
        state: State directory.
        config: The configuration; None for none.
        path: Its file.
        texts: Texts and ids; suite and anchor files are searched for them.
    """
    audit = None if config is None else config.settings.audit.file
    own = {*OWN_FILES, *(() if audit is None else (audit.name, f"{audit.name}.last"))}  # an audit log has no texts
    for file in sorted(state.iterdir() if state.is_dir() else ()):
        if file.name not in own:
            yield f"{file}: beside the database; delete it if it is a backup"
    if config is not None and path is not None:
        yield from _sources(config)
        yield from (f"{file}: {_search(file, texts)}" for file in _referenced_files(config, path))
        for judge in config.judges:
            if getattr(judge.options, "base_url", None):
                yield f"judge {judge.place.name}: texts were sent to {judge.options.base_url}; see its retention"  # type: ignore[attr-defined]  # checked above
    yield "backups of the state, exported files (suggested suites, labels, qrels, reports): ragwatch does not know them"


def _sources(config: Config) -> Iterator[str]:
    for source in config.sources:
        if isinstance(source.options, HasLogFiles):
            patterns = ", ".join(source.options.patterns)
            yield f"{patterns}: the logs of source {source.options.name}; what is not read yet will be stored"
        else:
            yield f"source {getattr(source.options, 'name', source.kind)}: whoever sends it keeps its own copy"


def _referenced_files(config: Config, path: Path) -> Iterator[Path]:
    """Files that the configuration names: canary suites, anchors, rollout variants."""
    folder = path.resolve().parent
    suites = load_text(path).get("canaries")
    names = (suite.get("file") for suite in (suites if isinstance(suites, list) else ()) if isinstance(suite, dict))
    yield from (folder / name for name in names if isinstance(name, str))
    if config.settings.anchors is not None:
        yield folder / config.settings.anchors.file


def _search(file: Path, texts: Collection[str]) -> str:
    """Whether a file contains one of the texts, as text for people."""
    try:
        if file.stat().st_size > MAX_SEARCHED_BYTES:
            return "is too large to be searched; search it yourself"
        content = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    lines = [number for number, line in enumerate(content.splitlines(), 1) if any(text in line for text in texts)]
    return f"line {lines[0]} contains one of the texts; edit it" if lines else "contains none of the ids and texts"
