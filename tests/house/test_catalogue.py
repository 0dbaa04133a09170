"""HELP of the series in the catalogue."""

from __future__ import annotations

import re

from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.model.quantities import Quantity


def test_help_is_one_sentence() -> None:
    """HELP says what the number means, and never quotes a template."""
    for series in CATALOGUE:
        assert re.fullmatch(r"[A-Z][^\n{}]{10,}\.", series.help), series.name


def test_what_the_digest_caches_says_so() -> None:
    """An estimate is as old as the last digest, and its HELP admits it."""
    cached = [series for series in CATALOGUE if "window" in series.labels]
    assert len(cached) == len(Quantity) * 7 + 8 + 3 + 5
    assert all("as of the last digest" in series.help for series in cached)
