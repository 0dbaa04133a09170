"""The page of the bench against other tools says what was locked and measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bench_peers.md"
PARTS = ("judges", "embedded", "tail", "drift", "scrape")
TOOLS = {
    "ragas": ("ragas", "ragas"),
    "deepeval": ("deepeval", "deepeval"),
    "TruLens": ("trulens", "trulens-core"),
    "phoenix-evals": ("phoenix", "arize-phoenix-evals"),
}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_a_table_and_a_chart(part: str) -> None:
    """Between its marks stands a table, and the page shows its chart."""
    text = PAGE.read_text(encoding="utf-8")
    table = re.search(rf"(?s)<!-- {part} -->\n(.*?)\n<!-- /{part} -->", text)
    assert table is not None
    assert table[1].startswith("| ")
    assert f"(bench_peers_{part}.svg)" in text


@pytest.mark.parametrize("tool", TOOLS)
def test_versions_are_those_of_the_locks(tool: str) -> None:
    """The version in the table is the one that `make bench-peers` installs."""
    lock, package = TOOLS[tool]
    pinned = re.search(rf"(?m)^{package}==(\S+)", (ROOT / "bench" / "peers" / f"{lock}.lock").read_text())
    assert pinned is not None
    assert f"| {tool} {pinned[1]} |" in PAGE.read_text(encoding="utf-8")
