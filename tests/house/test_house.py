"""The rules of the house: sizes, names, layers, docstrings, described keys, and a short example."""

import ast
import re
from pathlib import Path

import pytest
from support.parsed import trees

from ragwatch import judges, probes, sources, stores
from ragwatch.config import load
from ragwatch.config.alerts import Alerts
from ragwatch.config.model import SamplingOptions, Settings
from tools.reference import keys

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "ragwatch").rglob("*.py"))
FILES = sorted(each for room in ("ragwatch", "tests", "training", "bench") for each in (ROOT / room).rglob("*.py"))
EXAMPLE = ROOT / "config.example.yaml"
MAX_LINES, MAX_LINES_OF_A_FUNCTION = 400, 50
FORBIDDEN = re.compile(r"util(s|ities)?|helpers?|commons?|base|managers?|misc")


def name(path: Path) -> str:
    """A path as people write it."""
    return path.relative_to(ROOT).as_posix()


def test_files_fit_on_a_few_screens() -> None:
    """No file has more than 400 lines."""
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


@pytest.mark.costly
def test_functions_fit_on_a_screen() -> None:
    """No function has more than 50 lines, its docstring included."""
    long = {
        f"{name(path)}:{node.lineno} {node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_LINES_OF_A_FUNCTION
    }
    assert long == set()


def test_no_place_for_leftovers() -> None:
    """A file is named for what it is; utils, helpers, common, base and manager say nothing."""
    assert [
        name(path) for path in FILES if FORBIDDEN.fullmatch(path.stem) or FORBIDDEN.fullmatch(path.parent.name)
    ] == []


def test_no_machine_paths_and_no_registries() -> None:
    """Nothing in the package depends on where it was built."""
    forbidden = re.compile(r"/home/\w|/work/|/Users/\w|pypi\.org/simple|files\.pythonhosted")
    assert [name(path) for path in PACKAGE if forbidden.search(path.read_text(encoding="utf-8"))] == []


def test_example_is_valid() -> None:
    """The example can be run as it is, and its kinds are those of the defaults."""
    config = load(EXAMPLE)
    assert [each.kind for each in config.judges] == ["lexical"]
    assert config.settings.retention == Settings.model_fields["retention"].default


def test_every_key_says_what_it_means() -> None:
    """docs/reference.md and the schema have a meaning for each key, as a sentence in one line."""
    assert [f"{key.path}{key.note}" for key in keys() if not re.match(r"(?s)\S.*[.)]$", key.meaning)] == []


def test_the_example_is_short() -> None:
    """It has what most people set, and fits on two screens; docs/reference.md has the rest."""
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 150


def test_example_shows_defaults() -> None:
    """What the example sets is the default, wherever there is one that a machine can compare."""
    settings = load(EXAMPLE).settings
    different = {
        key
        for key, field in Settings.model_fields.items()
        if not field.is_required() and getattr(settings, key) != field.get_default(call_default_factory=True)
    }
    assert different <= {"routes", "sampling", "alerts"}  # examples of what has no default
    assert settings.alerts.model_copy(update={"slos": {}}) == Alerts()
    assert settings.sampling.model_copy(update={"routes": {}}) == SamplingOptions()


@pytest.mark.parametrize("room", [sources, judges, probes, stores], ids=["sources", "judges", "probes", "stores"])
def test_kinds_refuse_unknown_keys_and_are_frozen(room: object) -> None:
    """A kind is a module with `Options` and `build`; its options are values."""
    for module in room.KINDS.values():  # type: ignore[attr-defined]
        assert (module.Options.model_config.get("extra"), module.Options.model_config.get("frozen")) == ("forbid", True)
        assert callable(module.build)
