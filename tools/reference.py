"""Builds docs/reference.md: every command with its options, every configuration key with its default, every series."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ragwatch import judges, probes, sources, stores
from ragwatch.commands import cli
from ragwatch.config.canaries import CanaryItemOptions, SuitePlace
from ragwatch.config.judge_options import JudgeOptions
from ragwatch.config.model import Settings
from ragwatch.exporter.catalogue import markdown

HEAD = """# Reference

Written by `tools/readme.py` from the program. Commands say more with `--help`. What most people set stands in
[config.example.yaml](../config.example.yaml). HTTP routes and who may use them: [security.md](security.md).
"""
SECTIONS: tuple[tuple[str, str, Mapping[str, Any], type[BaseModel] | None], ...] = (
    ("sources", "sources[]", sources.KINDS, None),
    ("judges", "judges[]", judges.KINDS, JudgeOptions),
    ("store", "store", stores.KINDS, None),
    ("canaries", "canaries[].probe", probes.KINDS, None),
)


def reference() -> str:
    """The text of the page."""
    commands = "\n".join(line for path, command in commands_of(cli, ("ragwatch",)) for line in _command(path, command))
    keys = "\n".join(_keys())
    return f"{HEAD}\n## Commands\n\n{commands}\n## Configuration keys\n\n{keys}\n## Series\n\n{markdown()}\n"


def commands_of(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below a command that is not hidden, with its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in sorted(command.list_commands(context)):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from commands_of(inner, (*path, name))


def _command(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command)
    yield f"### {' '.join(path)}\n"
    yield f"{_cell((command.help or '').partition(chr(10) * 2)[0])}\n"
    records = [record for option in command.params if (record := option.get_help_record(context)) is not None]
    if records:
        yield "| option | meaning |\n|---|---|"
        yield from (f"| `{_cell(name)}` | {_cell(text)} |" for name, text in records)
        yield ""


def _keys() -> Iterator[str]:
    yield "| key | default | meaning |\n|---|---|---|"
    yield from (f"| `{key.path}`{key.note} | {_default(key.field)} | {_cell(key.meaning)} |" for key in keys())
    yield ""


class Key(NamedTuple):
    """A key of the configuration: its path, the kind that has it as a note, and its field."""

    path: str
    note: str
    field: FieldInfo

    @property
    def meaning(self) -> str:
        """What it means; empty for a field without a description."""
        return self.field.description or ""


def keys() -> Iterator[Key]:
    """Yield every key of the configuration that has a value of its own, kind by kind."""
    yield from _fields(Settings, "")
    yield from _fields(SuitePlace, "canaries[].")
    yield from _fields(CanaryItemOptions, "canaries[].items[].")
    for _, place, kinds, common in SECTIONS:
        if common is not None:
            yield from _fields(common, f"{place}.")
        for name, kind in kinds.items():
            yield from _fields(kind.Options, f"{place}.", f" (`kind: {name}`)")


def _fields(model: type[BaseModel], place: str, note: str = "") -> Iterator[Key]:
    for name, field in model.model_fields.items():
        inner = _model_of(field.annotation)
        key = f"{place}{field.alias or name}"
        if inner is None:
            yield Key(key, note, field)
        else:
            yield from _fields(inner, f"{key}{_items_of(field.annotation)}.", note)


def _model_of(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - a type expression
    """The model in a type such as `X`, `X | None`, `tuple[X, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = [model for argument in get_args(annotation) if (model := _model_of(argument)) is not None]
    return models[0] if models else None


def _items_of(annotation: Any) -> str:  # noqa: ANN401 - a type expression
    """How the parts of a value are written: `[]` of a list, `.NAME` of a mapping, nothing of one value."""
    kinds = {get_origin(part) for part in (annotation, *get_args(annotation))}
    return "[]" if kinds & {list, tuple} else ".NAME" if kinds & {dict, Mapping} else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True) if field.default_factory is not None else field.default
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}: {number}" for name, number in value.items())
    elif isinstance(value, tuple | list | frozenset):
        value = ", ".join(sorted(map(str, value)) if isinstance(value, frozenset) else map(str, value))
    return f"`{str(value).lower() if isinstance(value, bool) else _cell(str(value))}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
