"""Loads YAML safely, and resolves secrets."""

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import TypeVar

import yaml

from ragwatch.errors import ConfigError, FormatError

Line = TypeVar("Line")
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")


def _reject_ambiguous_number(path: str, node: yaml.ScalarNode) -> None:
    """Reject a number in base 60 or base 8, which is usually meant as a time, or as a number with a leading zero."""
    text = node.value
    if node.tag in (_INT, _FLOAT) and ":" in text:
        raise ConfigError(
            f"{path}: YAML reads {text} as a number in base 60; "
            f'write "{text}" in quotes where a text is meant, or the number itself, or a duration such as 90s'
        )
    if node.tag == _INT and _OCTAL.fullmatch(text):
        digits = ("-" if text.startswith("-") else "") + (text.lstrip("+-").replace("_", "").lstrip("0") or "0")
        raise ConfigError(
            f"{path}: YAML reads {text} as an octal number, {int(text.replace('_', ''), 8)}; "
            f'write {digits} for the number, or "{text}" in quotes for the text'
        )


def _scalars(root: yaml.Node | None) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Iterate over all scalars with their paths, in the order of the file; aliases are visited once."""
    stack: list[tuple[str, yaml.Node]] = [] if root is None else [("", root)]
    seen: set[int] = set()
    while stack:
        path, node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield path or "value", node
        elif isinstance(node, yaml.SequenceNode):
            stack += reversed([(f"{path}[{index}]", item) for index, item in enumerate(node.value)])
        elif isinstance(node, yaml.MappingNode):
            children = [(f"{path}.{_key_text(key)}" if path else _key_text(key), key, item) for key, item in node.value]
            stack += reversed(
                [pair for child_path, key, item in children for pair in ((child_path, key), (child_path, item))]
            )


def _key_text(key: yaml.Node) -> str:
    return str(key.value) if isinstance(key, yaml.ScalarNode) else "?"


def _join_surrogates(path: str, node: yaml.ScalarNode) -> None:
    """Replace each surrogate pair in a text or a key by the character that it means; no encoding has half of one."""
    try:
        node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        place = path.encode("utf-8", "backslashreplace").decode()  # a key may be such a text itself
        raise ConfigError(
            f"{place}: contains half of a surrogate pair; "
            r'write the character itself, or both halves such as "\ud83d\ude00"'
        ) from error


MAX_BYTES = 1 << 20
_MAX_ALIASES = 50
_MAX_DEPTH = 30
_MAX_VALUES = 100_000

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,100})(?::-([^}]{0,1000}))?\}")


class _Loader(yaml.SafeLoader):
    """SafeLoader that rejects duplicate keys, and more than `_MAX_ALIASES` aliases."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > _MAX_ALIASES:
                raise ConfigError(f"more than {_MAX_ALIASES} YAML aliases; write the values out")
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: dict[str, yaml.Node]) -> yaml.MappingNode:
        # Not when mappings are constructed: by then merge keys (`<<`) may legitimately have added a key twice.
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen and key is not None:
                line = key_node.start_mark.line + 1
                raise ConfigError(f"line {line}: key {key!r} stands twice in one mapping; keep one of them")
            seen.add(key)
        return node


def load_text(path: Path) -> dict[str, object]:
    """Read a YAML file whose root is a mapping. `ConfigError` says why it cannot be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path.name}: larger than {MAX_BYTES} bytes; this is not a configuration")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name}: is not UTF-8 text: {error.reason} at byte {error.start}") from error
    return parse_text(text, path.name)


def read_lines(path: Path, read: Callable[[bytes, int], Line]) -> list[Line]:
    """Return what `read` makes of the lines of a file that are not blank, and of their numbers from 1.

    `ConfigError` has all errors of `read`, one per line, with file and line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    made: list[Line] = []
    errors: list[str] = []
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), start=1):
        if line.strip():
            try:
                made.append(read(line, number))
            except (FormatError, JSONDecodeError) as error:
                is_json = isinstance(error, FormatError)
                said = str(error) if is_json else f"is not JSON: {error}; write one object a line"
                errors.append(f"{path.name} line {number}: {said}")
    if errors:
        raise ConfigError("\n".join(errors))
    return made


def parse_text(text: str, name: str) -> dict[str, object]:
    """Parse a YAML text whose root is a mapping; errors begin with `name`."""
    try:
        data = _load_yaml(text)
    except yaml.YAMLError as error:
        said = " ".join(str(error).replace(' in "<unicode string>",', " at").split())
        raise ConfigError(f"{name}: not valid YAML: {said}") from error
    except RecursionError as error:
        raise ConfigError(f"{name}: nested too deeply; a configuration is a few levels deep") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{name}: must be a mapping of keys such as `sources:`; see config.example.yaml")
    return data


def _load_yaml(text: str) -> object:
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        for path, node in _scalars(root):
            _reject_ambiguous_number(path, node)
            _join_surrogates(path, node)
            if "\0" in node.value:
                place = path.replace("\0", r"\0")
                raise ConfigError(
                    f"{place}: contains the character NUL, which no path or header can hold; leave it out"
                )
        return None if root is None else loader.construct_document(root)
    except ValueError as error:  # such as the date 2026-13-45, or an integer of 5000 digits
        raise ConfigError(f"holds a value that cannot be read: {str(error).partition(';')[0]}; quote it") from error
    finally:
        loader.dispose()


def value_of(text: str) -> object:
    """Parse a value of a command line as YAML. `ConfigError` if it is not YAML."""
    try:
        return _load_yaml(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r} is not YAML; quote it: {error}") from error


def resolve_secrets(data: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Replace `${VARIABLE}` and `file:PATH` in all values. `ConfigError` names the key of one that is missing."""
    resolved = _SecretResolver(folder).resolve(data, "", 0)
    if not isinstance(resolved, dict):
        raise ConfigError("the configuration must be a mapping")
    return resolved


class _SecretResolver:
    """Resolves secrets, and limits depth and number of values: nested aliases can make a small file huge."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = 0

    def resolve(self, value: object, where: str, depth: int) -> object:
        self._values += 1
        if depth > _MAX_DEPTH:
            raise ConfigError(f"{where[:60]}: nested deeper than {_MAX_DEPTH} levels")
        if self._values > _MAX_VALUES:
            raise ConfigError(f"{where[:60]}: more than {_MAX_VALUES} values; aliases multiply, write the values out")
        if isinstance(value, Mapping):
            prefix = f"{where}." if where else ""
            return {key: self.resolve(item, f"{prefix}{key}", depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        return _resolve_text(value, where, self._folder) if isinstance(value, str) else value


def _resolve_text(value: str, where: str, folder: Path) -> str:
    if value.startswith("file:"):
        path = folder / value.removeprefix("file:")
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
            raise ConfigError(
                f"{where}: secret file {path} cannot be read; write the path of a readable file"
            ) from error

    def variable(match: re.Match[str]) -> str:
        replacement = os.environ.get(match[1], match[2])
        if replacement is None:
            raise ConfigError(f"{where}: environment variable {match[1]} is not set; set it, or remove this key")
        if not replacement.isascii() and any("\ud800" <= char <= "\udfff" for char in replacement):
            raise ConfigError(f"{where}: environment variable {match[1]} is not UTF-8 text; set it to one that is")
        return replacement

    return _VARIABLE.sub(variable, value)


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Begin errors about the content of a file with the key that names the file."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError("\n".join(f"{where}: {line}" for line in str(error).splitlines())) from error
