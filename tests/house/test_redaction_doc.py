"""docs/redaction.md lists the rules that there are."""

from __future__ import annotations

from pathlib import Path

from ragwatch.redaction.rules import RULES

DOC = Path(__file__).parents[2] / "docs" / "redaction.md"


def test_table_lists_every_rule() -> None:
    """One row a rule, in the order in which they are tried. A failure shows the rows to write."""
    rows = [f"| `{rule.name}` | {rule.kind} | {rule.about} |" for rule in RULES]
    text = DOC.read_text(encoding="utf-8")
    written = [line for line in text.splitlines() if line.startswith("| `")]
    assert written == rows
