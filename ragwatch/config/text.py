"""Text: YAML read safely, secrets filled in, and errors told as `path.to.key: what is wrong, what to write instead`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from ragwatch.config.traps import refuse_traps
from ragwatch.errors import ConfigError

MOST_BYTES = 1 << 20
MOST_ALIASES = 50
MOST_DEPTH = 30
MOST_VALUES = 100_000
NEAR = 0.75  # how much alike a key must be to be offered for another one: `rows` is not meant to be `follows`

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,100})(?::-([^}]{0,1000}))?\}")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s?(ms|s|m|h|d|w)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s?([KMGT]i?B|B)", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_BYTES |= {"tib": 2**40}


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys and too many aliases, both of which hide what a file really says."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as upstream
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > MOST_ALIASES:
                raise ConfigError(f"more than {MOST_ALIASES} YAML aliases; write the values out")
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        # Here and not where mappings are constructed: by then merge keys have put the same key in twice lawfully.
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen and key is not None:
                line = key_node.start_mark.line + 1
                raise ConfigError(f"line {line}: key {key!r} stands twice in one mapping; keep one of them")
            seen.add(key)
        return node


def load_text(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: It cannot be read, is too large or deep, or is not a mapping.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path.name}: larger than {MOST_BYTES} bytes; this is not a configuration")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name}: is not UTF-8 text: {error.reason} at byte {error.start}") from error
    return parse_text(text, path.name)


def parse_text(text: str, name: str) -> dict[str, Any]:
    """The mapping in a YAML text; `name` says where it came from in errors."""
    try:
        data = _loaded(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply; a configuration is a few levels deep") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{name}: must be a mapping of keys such as `sources:`; see config.example.yaml")
    return data


def _loaded(text: str) -> Any:  # noqa: ANN401 - any YAML value
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        refuse_traps(root)
        return None if root is None else loader.construct_document(root)
    except ValueError as error:  # such as 2026-13-45, which YAML takes for a date, or an integer of 5000 digits
        raise ConfigError(f"holds a value that cannot be read: {str(error).partition(';')[0]}; quote it") from error
    finally:
        loader.dispose()


def value_of(text: str) -> object:
    """What a value on a command line means, as it would in the file: a number, a word, a list ...

    Raises:
        ConfigError: It is not YAML.
    """
    try:
        return _loaded(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r} is not YAML; quote it: {error}") from error


def resolve_secrets(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same data with `${VARIABLE}` and `file:PATH` filled in.

    Raises:
        ConfigError: A variable is not set, or a file cannot be read; named by the key that wanted it.
    """
    resolved = _Filler(folder).filled(data, "", 0)
    if not isinstance(resolved, dict):
        raise ConfigError("the configuration must be a mapping")
    return resolved


class _Filler:
    """Fills in secrets, and counts: a few aliases of aliases make a small file a huge configuration."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = 0

    def filled(self, value: Any, where: str, depth: int) -> Any:  # noqa: ANN401 - any YAML value
        self._values += 1
        if depth > MOST_DEPTH:
            raise ConfigError(f"{where[:60]}: nested deeper than {MOST_DEPTH} levels")
        if self._values > MOST_VALUES:
            raise ConfigError(f"{where[:60]}: more than {MOST_VALUES} values; aliases multiply, write the values out")
        if isinstance(value, Mapping):
            below = f"{where}." if where else ""
            return {key: self.filled(item, f"{below}{key}", depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        return _fill(value, where, self._folder) if isinstance(value, str) else value


def _fill(value: str, where: str, folder: Path) -> str:
    if value.startswith("file:"):
        path = folder / value.removeprefix("file:")
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
            raise ConfigError(
                f"{where}: secret file {path} cannot be read; write the path of a readable file"
            ) from error

    def variable(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], match[2])
        if found is None:
            raise ConfigError(f"{where}: environment variable {match[1]} is not set; set it, or remove this key")
        return found

    return _VARIABLE.sub(variable, value)


def duration_seconds(value: object) -> object:
    """`15m` in seconds; numbers stay as they are.

    >>> duration_seconds("15m"), duration_seconds("1.5h"), duration_seconds(10)
    (900.0, 5400.0, 10)
    """
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a duration; write one such as 30s, 15m, 1h or 7d")
    return float(match[1]) * _SECONDS[match[2]]


def size_bytes(value: object) -> object:
    """`2GiB` in bytes; numbers stay as they are.

    >>> size_bytes("2GiB"), size_bytes("500 MB"), size_bytes(10)
    (2147483648, 500000000, 10)
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a size; write one such as 500MB or 2GiB")
    return int(float(match[1]) * _BYTES[match[2].lower()])


_MEMBER = re.compile(r"(str|int|float|bool|(list|dict|tuple|set)\[.*|(constrained|lax|function|nullable)-.*)")
"""What pydantic puts into a path for a type that is one of several; no key of a configuration looks like it."""
_WORDING: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda _: "is missing; add it",
    "literal_error": lambda error: f"{error['input']!r} is not known; use {error['ctx']['expected']}",
    "string_pattern_mismatch": lambda error: (
        f"{error['input']!r} does not look right; it must match {error['ctx']['pattern']}"
    ),
}


def explain(error: dict[str, Any], where: str, known: list[str]) -> str:
    """One pydantic error as a line for people.

    Args:
        error: An item of `ValidationError.errors()`.
        where: Path of the mapping that was checked.
        known: Keys it may have; the nearest is offered for an unknown one.
    """
    place = where
    for part in error["loc"]:
        if part == "[key]" or (isinstance(part, str) and _MEMBER.fullmatch(part)):
            continue
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    if error["type"] == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), known, n=1, cutoff=NEAR)
        instead = f"did you mean `{near[0]}`?" if near else f"use one of: {', '.join(known)}"
        return f"{place}: is not a known key; {instead}"
    wording = _WORDING.get(error["type"])
    message = wording(error) if wording else error["msg"].removeprefix("Value error, ")
    return f"{place}: {message[0].lower() + message[1:] if message[1:2].islower() else message}"


def explain_all(
    errors: Sequence[Mapping[str, Any]], where: str, known: Callable[[tuple[int | str, ...]], list[str]]
) -> list[str]:
    """All errors of a model, a line each.

    Where a value may be of several types, pydantic tells why it is none of them, each for itself: the one that fits
    best is told, or all in one line.

    Args:
        errors: `ValidationError.errors()`.
        where: Path of the mapping that was checked.
        known: The keys that the mapping in which a path ends may have.
    """
    lines: dict[str, list[str]] = {}
    for error in errors:
        line = explain(dict(error), where, known(error["loc"]))
        place, _, wrong = line.partition(": ")
        if any(isinstance(part, str) and _MEMBER.fullmatch(part) for part in error["loc"]):
            lines = {other: said for other, said in lines.items() if not place.startswith(f"{other}[")}
        lines.setdefault(place, []).append(wrong)
    return [f"{place}: {' or '.join(_shortened(said))}" for place, said in lines.items()]


def _shortened(said: Sequence[str]) -> list[str]:
    """What is wrong with one value; the words that all reasons of pydantic begin with stand once."""
    first, *others = dict.fromkeys(said)
    return [first, *(each.removeprefix("input should be ") for each in others)]
