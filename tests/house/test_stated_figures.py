"""Figures that stand in several pages are those of one source: the model card, which `make bench-judge` checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CARD = (ROOT / "training" / "LOCAL.md").read_text(encoding="utf-8")
EVERY_ROW = "| all rows: AttributionBench test / FEVER-symmetric test / WiCE test |"
SETS = re.compile(r"(?m)^\| ([^|]+) \| (\.\d{3}) \| \.\d{3} \| (\.\d{3}) \| [^|]+ \| [^|]+ \|$")
"""Rows of the card's table: set, AUROC of words, of the run before, of the newest run."""


def page(name: str) -> str:
    """A page on one line, so that a figure may stand at the end of a line."""
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def of_card(row: str) -> list[list[str]]:
    """Figures of a row of the card by column: words, the run before, the newest run; without their intervals."""
    line = next(line for line in CARD.splitlines() if line.startswith(row))
    return [re.findall(r"\.\d{3}", re.sub(r"\[.*?\]", "", column)) for column in line.split("|")[2:5]]


def rounded(figure: str) -> str:
    """Two digits of a share.

    >>> rounded(".726")
    '.73'
    """
    return f"{float(figure):.2f}".removeprefix("0")


def test_agreement_with_people_is_that_of_the_card() -> None:
    """docs/judges.md rounds the card's figures for whole sets."""
    words, _, newest = of_card(EVERY_ROW)
    for name, lexical, local in zip(("AttributionBench", "FEVER-symmetric", "WiCE"), words, newest, strict=True):
        assert f"{rounded(local)} against {rounded(lexical)} ({name})" in page("docs/judges.md")
    (lexical,), _, (local,) = of_card("| ExpertQA whole answers (claims taught) |")
    assert f"{rounded(local)} against {rounded(lexical)}" in page("docs/judges.md")


def test_the_bench_shows_the_card() -> None:
    """Its table of agreement has every set of the card, and no other figure."""
    rows = [f"| {name} | {words} | {now} |" for name, words, now in SETS.findall(CARD)]
    table = re.search(
        r"(?s)\| set \| ragwatch lexical, AUROC .*?(?=\n<!--)", (ROOT / "docs/bench_peers.md").read_text()
    )
    assert table is not None
    assert len(rows) >= 8
    assert table[0].splitlines()[2:] == rows


@pytest.mark.parametrize("name", ["training/LOCAL.md", "docs/judges.md", "reader/README.md"])
def test_the_model_is_as_large_as_pages_say(name: str) -> None:
    """Megabytes of its graph, which the wheel of the model brings."""
    graph = ROOT / "reader" / "ragwatch_reader" / "model" / "reader.onnx"
    assert f"{graph.stat().st_size / 1e6:.1f} MB" in page(name)


@pytest.mark.parametrize("name", ["README.md", "docs/comparison.md", "docs/faq.md"])
def test_overviews_repeat_no_agreement(name: str) -> None:
    """They lead to the cards, whose figures change with each judge."""
    assert not re.search(r"AUROC|\bF1 of \.", page(name))
