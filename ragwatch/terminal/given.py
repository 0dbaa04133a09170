"""Checks of what is given on a command line, and files that it names: one message for all commands."""

import os
from collections.abc import Sequence
from pathlib import Path

from ragwatch.config import Config
from ragwatch.config.canaries import SuiteConfig
from ragwatch.config.text import value_of
from ragwatch.errors import ConfigError
from ragwatch.model.sample import OTHER
from ragwatch.model.units import duration_seconds


def require_route(config: Config, route: str | None) -> None:
    """Refuse the route of `--route` with `ConfigError` if it is not configured."""
    routes = (*config.settings.routes, OTHER)
    if route not in (None, *routes):
        raise ConfigError(f"--route {route}: is not configured; use one of: {', '.join(routes)}")


def judge_name(config: Config, name: str | None) -> str:
    """Return the name of `--judge`, or that of the first judge; `ConfigError` if it is not configured."""
    names = [judge.place.name for judge in config.judges]
    if name not in (None, *names):
        raise ConfigError(f"--judge {name}: is not configured; use one of: {', '.join(names)}")
    return name or names[0]


def suites_of(config: Config, *names: str) -> list[SuiteConfig]:
    """Return the suites of `--suite`, or all; `ConfigError` if one is not configured, or there is none."""
    configured = {suite.place.suite: suite for suite in config.canaries}
    if not configured:
        raise ConfigError("canaries: none is configured; add a suite such as {suite: docs, file: ..., probe: {...}}")
    for name in names:
        if name not in configured:
            raise ConfigError(f"--suite {name}: is not configured; use one of: {', '.join(configured)}")
    return [suite for name, suite in configured.items() if not names or name in names]


def seconds_of(option: str, text: str) -> float:
    """Return the seconds in a duration such as `7d`; `ConfigError`, which begins with `option`, if it is none."""
    try:
        return float(str(duration_seconds(text)))
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error


def settings_of(settings: Sequence[str], example: str) -> dict[str, object]:
    """Return the values of `--set KEY=VALUE` by key, read as YAML; `ConfigError` if one has no `=`."""
    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: is not KEY=VALUE, such as {example}")
        values[key] = value_of(value)
    return values


def read_text(name: str, path: Path, encoding: str = "utf-8") -> str:
    """Read a text file; `ConfigError`, which begins with `name`, if that fails."""
    try:
        return path.read_text(encoding)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}: cannot be read: {error}") from error


def write_text(name: str, path: Path, text: str, *, advice: str = "") -> None:
    """Write a text to a file; `ConfigError`, which begins with `name`, if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{name}: cannot be written: {error.strerror}{advice}") from error


def write_new(path: Path, text: str, mode: int = 0o666) -> None:
    """Write the new file of `--out`; `ConfigError` if it exists already, or cannot be written."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(text.encode("utf-8", "replace"))
    except FileExistsError as error:
        raise ConfigError(f"--out {path}: already exists and is not overwritten") from error
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written: {error.strerror}") from error
