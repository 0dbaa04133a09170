"""Texts use the standard terms of the field: words that were replaced do not come back, and the glossary is complete.

To check one more kind of text, add a row to `SURFACES`. To ban one more word, add a row to `WORDS`.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.oncall_cases import PLAN
from support.parsed import trees

from ragwatch.config.model import Settings
from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.model.quantities import Quantity
from ragwatch.rules import alerts
from ragwatch.rules.dashboards import BoardPlan, boards, sql_board

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"


class Word(NamedTuple):
    """A word or phrase that is not used any more."""

    pattern: str  # regular expression, matched as whole words and without regard to case
    instead: str  # what to write
    example: str  # a text that the pattern must match


Texts = Iterator[tuple[str, str]]
"""Texts that people read, each behind the place where it stands."""


WORDS = (
    Word(r"left alone|leaves? \w+ alone", "the circuit breaker is open", "the judge is left alone"),
    Word(r"(?<!circuit )breaker", "circuit breaker", "the breaker closes"),
    Word(r"words alone|words (?:decide|read)|left to words", "the lexical judge", "words alone read"),
    Word(
        r"(?:speaks?|spoke) (?:to|of)|spoke before", "is addressed to, contains, names", "texts that speak to the judge"
    ),
    Word(
        r"orders? (?:to|from)|(?:give|obey)s? orders?|on order", "instructions; prompt injection", "orders to the judge"
    ),
    Word(r"stor(?:ey|eys)", "cross-encoder", "the second storey"),
    Word(r"\w+body is (?:called|told)|calls? (?:\w+body|people)", "pages, notifies", "nobody is called"),
    Word(r"nobody watches|is (?:blind|deaf|mute)", "is not monitored", "nobody watches the answers"),
    Word(r"told", "reported, said in the log, known", "what was told before"),
    Word(r"anew", "again, from the start", "it begins anew"),
    Word(r"books?|out of balance", "counters, invariants", "the books do not balance"),
    Word(r"laws?", "invariant", "a law was broken"),
    Word(r"fall(?:s|en)? silent|stands? still", "delivers no records; does not advance", "a source has fallen silent"),
    Word(r"for nothing|cr(?:y|ies) wolf", "false alarm, false positive", "called for nothing"),
    Word(
        r"(?:keeps?|gave|give|holds?) (?:its|their) (?:word|peace|promise)", "guarantees, is valid", "keep their word"
    ),
    Word(r"people's words?|words? of people", "labels by people", "people's words on answers"),
    Word(r"befell|befall|sick|deaf|yardstick", "the plain fact", "a sick disk"),
    Word(r"otherwise than", "differently from", "judges otherwise than it did"),
    Word(r"rooms?|doors?|twins|roster|purse|notebook", "package, API, copy, table, budget", "one library, one room"),
    Word(r"looked at beside|(?:costs?|price|figures?|share) beside", "compared with", "the cost beside the budget"),
    Word(r"put back", "deferred", "the draw was put back"),
)


def without_code(text: str) -> str:
    """Prose of a Markdown text: code, link targets and templates are left out, because names in them are fixed."""
    text = re.sub(r"(?ms)^```.*?^```|`[^`]*`|\]\([^)]*\)|\{\{.*?\}\}", " ", text)
    return " ".join(text.split())


def markdown(folder: str) -> Texts:
    """Pages of a folder."""
    for page in sorted((ROOT / folder).rglob("*.md")):
        yield (page.relative_to(ROOT).as_posix(), without_code(page.read_text(encoding="utf-8")))


def readme_texts() -> Texts:
    """Sections of the README."""
    for section in re.split(r"(?m)^## ", (ROOT / "README.md").read_text(encoding="utf-8")):
        yield (section.partition("\n")[0], without_code(section))


def docstrings() -> Texts:
    """Docstrings of modules, classes and functions of the package, without code."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                prose = re.sub(r"(?m)^ *(>>>|\.\.\.).*$", "", ast.get_docstring(node) or "")
                yield (f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", without_code(prose))


@cache
def tokens() -> dict[int, list[tuple[str, str]]]:
    """Names and comments of the package by their type, each behind its place."""
    by_type: dict[int, list[tuple[str, str]]] = {tokenize.COMMENT: [], tokenize.NAME: []}
    for path in sorted((ROOT / "ragwatch").rglob("*.py")):
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            if token.type in by_type:
                by_type[token.type].append((f"{path.relative_to(ROOT)}:{token.start[0]}", token.string))
    return by_type


def page_texts() -> Texts:
    """Texts of the HTML templates, without tags, expressions and code."""
    for path in sorted((ROOT / "ragwatch" / "web" / "templates").glob("*.html")):
        text = re.sub(r"(?s)\{[{%#].*?[}%#]\}|<code.*?</code>|<[^>]*>", " ", path.read_text(encoding="utf-8"))
        yield (path.name, text)


def help_texts() -> Texts:
    """HELP of every series, and the meanings of the quantities in it."""
    for series in CATALOGUE:
        yield (series.name, series.help)
    for quantity, meaning in ((quantity, quantity.row.meaning) for quantity in Quantity):
        yield (str(quantity), meaning)


def alert_texts() -> Texts:
    """Summaries and descriptions."""
    for alert in alerts(PLAN):
        yield (alert.name, without_code(f"{alert.summary} {alert.description}"))


def dashboard_texts() -> Texts:
    """Titles, descriptions, legends and names of annotations, links and variables."""
    every = {**boards(BoardPlan(pages="https://ragwatch.example.com")), "stored.json": sql_board()}
    for name, board in every.items():
        for text in _shown(board):
            yield (name, without_code(text))


def _shown(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in {"title", "description", "legendFormat", "label", "name", "tooltip"} and isinstance(value, str):
                yield value
            else:
                yield from _shown(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _shown(value)


MEANINGLESS_NAMES = {"each", "found", "told", "thing"}
REPLACED_NAMES = re.compile(
    "anew|befell|beside|chains|desk|door|fewest|inquiry|keeping|ledger|notebook|purse|roster|sheet|storey|twins|yardstick"
)
SURFACES: Mapping[str, Callable[[], Texts]] = {
    "HELP": help_texts,
    "alerts": alert_texts,
    "dashboards": dashboard_texts,
    "runbooks": lambda: markdown("deploy/runbooks"),
    "docs": lambda: markdown("docs"),
    "README": readme_texts,
    "configuration": lambda: iter([("config.example.yaml", (ROOT / "config.example.yaml").read_text("utf-8"))]),
    "docstrings": docstrings,
    "comments": lambda: ((place, without_code(text)) for place, text in tokens()[tokenize.COMMENT]),
    "pages": page_texts,
}


ANY_WORD = re.compile("|".join(rf"\b(?:{word.pattern})\b" for word in WORDS), flags=re.IGNORECASE)


def banned(text: str) -> list[str]:
    """What a text says that is not said any more, with what to write instead."""
    if not ANY_WORD.search(text):
        return []
    return [
        f"{match[0]!r}: write {word.instead}"
        for word in WORDS
        for match in re.finditer(rf"\b(?:{word.pattern})\b", text, flags=re.IGNORECASE)
    ]


@pytest.mark.costly
@pytest.mark.parametrize("surface", SURFACES)
def test_texts_use_the_terms_of_the_field(surface: str) -> None:
    """No text of a surface contains a word that was replaced."""
    texts = list(SURFACES[surface]())
    assert texts
    assert {place: faults for place, text in texts if (faults := banned(text))} == {}


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.example)
def test_the_list_catches_its_examples(word: Word) -> None:
    """Each pattern matches its example, also at the start of a sentence."""
    assert any(word.instead in fault for fault in banned(word.example))
    assert any(word.instead in fault for fault in banned(word.example.capitalize()))


@pytest.mark.costly
def test_names_use_the_terms_of_the_field() -> None:
    """No name of the package contains a word that was replaced, nor says of a thing only that it is one."""
    assert [(place, name) for place, name in tokens()[tokenize.NAME] if is_banned(name)] == []


@cache
def is_banned(name: str) -> bool:
    """Whether a name has a part that was replaced, or says nothing."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return name in MEANINGLESS_NAMES or any(REPLACED_NAMES.fullmatch(part.lower()) for part in parts)


def test_code_is_not_prose() -> None:
    """Names of labels and series are fixed: only the text around them is checked."""
    assert banned(without_code("Check `sum by (law) (x)` for {{ $labels.law }}.\n\n```sh\nlaw\n```\n")) == []
    assert banned(without_code("A law of\n`x`.")) != []


def rows() -> list[list[str]]:
    """Rows of the glossary's table, without its head."""
    table = re.findall(r"(?m)^\| (.*) \|$", GLOSSARY.read_text(encoding="utf-8"))
    return [[cell.strip() for cell in row.split(" | ")] for row in table[1:]]


def test_the_glossary_is_sorted_and_complete() -> None:
    """One row per term in alphabetical order, with one sentence of definition and the module it lives in."""
    table = [[*row, *[""] * (5 - len(row))] for row in rows()]
    terms = [term.lower() for term, *_ in table]
    assert terms == sorted(set(terms))
    for term, definition, code, _series, keys in table:
        assert re.fullmatch(r"[A-Z0-9].*\.", definition), term
        assert re.search(r"`ragwatch/\w", code), term
        used = {re.split(r"[.\[]", key)[0] for key in re.findall(r"`([^`]+)`", keys)}
        assert used <= set(Settings.model_fields) | {"sources", "judges", "canaries", "store"}, term


TERMS = """
Prompt injection, Circuit breaker, Rate limiter, Cross-encoder, PII, Backpressure, Retention, Hajek estimate,
Effective sample size, Manski bounds, PPI++, Confidence sequence, E-detector, Average run length (ARL),
Inclusion probability, Invariant, Canary, Probe, Cursor, Sample, Draw, Claim, Evidence, Verdict, Score, Estimate,
Label, Source, Format, Detector, Store, Snapshot, Board
"""


def test_the_glossary_has_the_terms_of_the_design() -> None:
    """Whoever looks for a standard term finds where it lives."""
    assert set(re.split(r",\s+", TERMS.strip())) <= {row[0] for row in rows()}
