"""docs/reference.md is what the program has: commands, configuration keys and series."""

from __future__ import annotations

from tools.cookbook import table
from tools.parquet_columns import with_table
from tools.readme import LOGS, PARQUET, REFERENCE, SETUP, logs_page
from tools.reference import reference


def test_reference_is_written_from_the_program() -> None:
    """Run `tools/readme.py` where this fails."""
    assert REFERENCE.read_text(encoding="utf-8") == reference()


def test_the_columns_of_exported_files_are_those_of_the_program() -> None:
    """Run `tools/readme.py` where this fails."""
    page = PARQUET.read_text(encoding="utf-8")
    assert page == with_table(page)
    assert "| `claims[].verdict` | string |" in page


def test_reference_has_what_people_look_for() -> None:
    """A command with its options, keys of lists and of mappings, and a series."""
    page = reference()
    for text in (
        "### ragwatch forget",
        "| `--url URL` |",
        "| `web.tokens[].rights` | required |",
        "| `alerts.slos.NAME.objective` | required |",
        "| `store.texts` (`kind: sqlite`) | `all` |",
        "`ragwatch_web_config_failures_total`",
    ):
        assert text in page


def test_the_pages_of_logs_are_current() -> None:
    """Run `tools/readme.py` where this fails."""
    page, brief = LOGS.read_text(encoding="utf-8"), SETUP.read_text(encoding="utf-8")
    assert page == logs_page(page)
    assert table(brief=True) in brief
