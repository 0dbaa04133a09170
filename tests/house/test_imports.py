"""Who imports what: libraries where they belong, pure arithmetic, no cycles; and how functions are called."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from support.parsed import module_name, trees
from support.patience import DEADLINE

ROOT = Path(__file__).parents[2]
LIBRARIES: Mapping[str, str] = {
    "anthropic": "judges.claude",
    "boto3": "sources.brokers.sqs",
    "botocore": "sources.brokers.sqs",
    "anyio": "daemon.loops sources.brokers.nats web",
    "apscheduler": "config.crontab daemon.schedule",
    "bcrypt": "web.authentication",
    "click": "commands offline terminal",
    "confluent_kafka": "sources.brokers.kafka",
    "cryptography": "stores.encryption",
    "google": "pipeline.export.otlp sources.otlp.protobuf_request",
    "grpc": "web.server.grpc_server",
    "h11": "web",
    "httpx": "outgoing judges.detector.fetch judges.openai pipeline.export.otlp probes.exchange sources.otlp.resolver",
    "jinja2": "web.pages.pages",
    "jmespath": "formats.expressions probes.expression",
    "mcp": "web.mcp.server",
    "mcp_types": "web.mcp.server",
    "nats": "sources.brokers.nats",
    "numpy": "judges.detector.quantise judges.detector.session judges.local.session",
    "onnxruntime": "judges.detector.session judges.local.session",
    "opentelemetry": "pipeline.export.otlp sources.otlp.protobuf_request sources.otlp.request",
    "orjson": "commands config formats judges offline probes sources stores web",
    "prometheus_client": "exporter",
    "psycopg": "stores.postgres",
    "pyarrow": "offline.export",
    "pydantic": "config judges ports probes sources stores",
    "pydantic_core": "config stores",
    "ragwatch_reader": "judges.local.artefact",
    "rapidfuzz": "probes.similarity",
    "redis": "sources.brokers.redis_streams",
    "rich": "commands offline terminal",
    "snowballstemmer": "judges.lexical.language",
    "starlette": "web",
    "structlog": "outgoing.proxies telemetry",
    "tokenizers": "judges.detector.session judges.local.session",
    "uvicorn": "web",
    "yaml": "config rules",
    "zstandard": "sources.requests",
}
"""Each third-party library, and the modules or packages of ragwatch that may import it."""

PURE = re.compile(
    "array|bisect|calendar|collections|dataclasses|enum|functools|hashlib|ipaddress|itertools|math|operator|re|statistics"
    "|types|typing|unicodedata|zlib"
)
"""Modules of the standard library that arithmetic may import: no clock, no chance, no I/O."""
MAX_POSITIONAL_ARGUMENTS = 5
VARIADIC = {"Table", "add_row", "compact_table"}  # of rich: one argument per column


@cache
def modules() -> dict[str, ast.Module]:
    """Syntax tree of each module of the package, by its dotted name."""
    return {module_name(path): tree for path, tree in trees().items()}


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names that a module imports, anywhere in it, for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules() else node.module


@cache
def imports() -> dict[str, frozenset[str]]:
    """What each module imports."""
    return {module: frozenset(imported(tree)) for module, tree in modules().items()}


def within(module: str, package: str) -> bool:
    """Whether a module is a package or in it."""
    return module == package or module.startswith(f"{package}.")


def places(library: str) -> list[str]:
    """What may import a library."""
    return [f"ragwatch.{place}" for place in LIBRARIES.get(library, "").split()]


def test_libraries_are_imported_where_they_belong() -> None:
    """Each third-party library is in the table, and every module that imports it is named there."""
    misplaced = {
        (module, name)
        for module, names in imports().items()
        for name in names
        if (top := name.partition(".")[0]) not in {*sys.stdlib_module_names, "ragwatch"}
        and not any(within(module, place) for place in places(top))
    }
    assert misplaced == set()


def test_the_table_holds_no_more_than_there_is() -> None:
    """Each place in the table imports its library."""
    users = {(module, name.partition(".")[0]) for module, names in imports().items() for name in names}
    table = {(place, library) for library in LIBRARIES for place in places(library)}
    assert {
        (place, library)
        for place, library in table
        if not any(library == theirs and within(user, place) for user, theirs in users)
    } == set()


def test_what_makes_a_number_is_pure() -> None:
    """Arithmetic and the tables that it stands on import themselves, errors, and the modules of the allow list."""
    (offline,) = re.findall(r"(?m)^OFFLINE = (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    arithmetic = offline.replace("/", ".").replace(".py", "").split(",")
    pure = ("ragwatch.statistics", "ragwatch.model", *arithmetic)
    impure = {
        (module, name)
        for module, names in imports().items()
        if any(within(module, package) for package in pure)
        for name in names
        if not any(within(name, package) for package in pure)
        and name not in {"__future__", "ragwatch.errors"}
        and not PURE.fullmatch(name.partition(".")[0])
    }
    assert impure == set()


def test_no_import_cycles() -> None:
    """No module imports itself over others, imports for type checkers included."""
    graph = {module: {name for name in names if name in modules()} - {module} for module, names in imports().items()}
    while leaves := [module for module, needed in graph.items() if not needed]:
        for module in leaves:
            del graph[module]
        for needed in graph.values():
            needed.difference_update(leaves)
    assert graph == {}


@pytest.mark.costly
def test_no_call_with_many_positional_arguments() -> None:
    """A reader of a call sees what each argument is: beyond five positional ones they are named."""
    calls = {
        f"{module}:{node.lineno} {ast.unparse(node.func)}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and len(node.args) > MAX_POSITIONAL_ARGUMENTS
        and ast.unparse(node.func).rpartition(".")[2] not in VARIADIC
        and not any(isinstance(argument, ast.Starred) for argument in node.args)
    }
    assert calls == set()


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
