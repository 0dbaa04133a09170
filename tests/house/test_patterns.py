"""Regular expressions that every admitted Python reads alike."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.parsed import trees
from support.patience import DEADLINE

ROOT = Path(__file__).parents[2]

# Notes every pattern that is compiled while all modules are imported.
LISTENING = """
import importlib, json, pkgutil
from re import _compiler
compile_it, heard = _compiler.compile, []
def listen(pattern, flags=0):
    if isinstance(pattern, str):
        heard.append([pattern, int(flags)])
    return compile_it(pattern, flags)
_compiler.compile = listen
import ragwatch
for module in pkgutil.walk_packages(ragwatch.__path__, "ragwatch."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(heard))
"""


def operations(part: object) -> set[str]:
    """Names of all operations of a parsed pattern."""
    if isinstance(part, re._parser.SubPattern):  # type: ignore[attr-defined]
        return {str(operation) for operation, _ in part.data}.union(*(operations(rest) for _, rest in part.data))
    if isinstance(part, list | tuple):
        return set().union(*map(operations, part))
    return set()


SUSPECT = re.compile(r"[+*?}]\+|\(\?>")


def faulty(pattern: str, flags: int = 0) -> bool:
    """Whether Python before 3.11.5 may read it otherwise. Only what looks like it is parsed."""
    if not SUSPECT.search(pattern):
        return False
    parsed = re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
    return not operations(parsed).isdisjoint({"POSSESSIVE_REPEAT", "ATOMIC_GROUP"})


def test_the_check_sees_what_it_looks_for() -> None:
    """Possessive quantifiers and atomic groups are found wherever they stand; a plus in a set is none."""
    assert [faulty(each) for each in ("a++", "(?:b|(c*+))", "a(?>b)", "a?+", "[*++]+", r"a\++")] == [True] * 4 + [
        False
    ] * 2


@pytest.mark.costly
def test_no_possessive_quantifiers_and_no_atomic_groups() -> None:
    """Neither in a pattern that is compiled with a module, nor in one that is written where it is used."""
    done = subprocess.run(
        [sys.executable, "-c", LISTENING], capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    heard = [(pattern, flags) for pattern, flags in json.loads(done.stdout)]
    assert len(heard) > 100
    assert [pattern for pattern, flags in heard if faulty(pattern, flags)] == []
    written = [
        argument.value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    assert len(written) > 50
    assert [pattern for pattern in written if faulty(pattern)] == []
