"""The README's table of series is the catalogue: every series is told of, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

from ragwatch.exporter.catalogue import CATALOGUE, markdown
from ragwatch.model.quantities import Quantity

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_shows_the_catalogue() -> None:
    """Between `<!-- series -->` and `<!-- /series -->` stands exactly what `catalogue.markdown()` says."""
    found = re.search(r"<!-- series -->\n(.*?)\n<!-- /series -->", README.read_text(), flags=re.DOTALL)
    assert found is not None
    assert found[1].strip() == markdown().strip()


def test_help_is_one_sentence() -> None:
    """HELP says what the number means, and never quotes a template."""
    for series in CATALOGUE:
        assert re.fullmatch(r"[A-Z][^\n{}]{10,}\.", series.help), series.name


def test_what_the_digest_caches_says_so() -> None:
    """An estimate is as old as the last digest, and its HELP admits it."""
    cached = [series for series in CATALOGUE if "window" in series.labels]
    assert len(cached) == len(Quantity) * 7 + 8 + 3 + 5
    assert all("as of the last digest" in series.help for series in cached)
