"""Sizes: one parser for every option, strict and with the same message."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ragwatch.model.units import size_bytes
from ragwatch.sources.tail.options import Options as TailOptions
from ragwatch.stores.sqlite.store import Options as StoreOptions


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1B", 1),
        ("2", 2),
        (" 4096 ", 4096),
        ("2kb", 2000),
        ("1KiB", 1024),
        ("1.5 MiB", 1572864),
        ("2GiB", 2 << 30),
        ("1TB", 10**12),
    ],
)
def test_sizes(value: str, expected: int) -> None:
    """Decimal and binary units in any case; digits alone are bytes."""
    assert size_bytes(value) == expected
    assert TailOptions(name="app", path="log", max_line_bytes=value).max_line_bytes == expected
    assert StoreOptions(min_free=value).min_free == expected


@pytest.mark.parametrize("value", ["", "1.5", "GiB", "-1KB", "2 PB", "2M", "1e3 KB", "2 GiB foo", True, False])
def test_invalid_sizes(value: Any) -> None:
    """Anything else is rejected, by the options of the tail source and the store as well."""
    message = "is not a size; write one such as 500MB or 2GiB"
    with pytest.raises(ValueError, match=message):
        size_bytes(value)
    for name in ("max_line_bytes", "read_bytes"):
        with pytest.raises(ValidationError, match=message):
            TailOptions(name="app", path="log", **{name: value})
    with pytest.raises(ValidationError, match=message):
        StoreOptions(min_free=value)


def test_other_values_are_unchanged() -> None:
    """Numbers are bytes; what is neither number nor text is left to the validation of the model."""
    assert (size_bytes(10), size_bytes(None), size_bytes([])) == (10, None, [])


def test_negative_sizes() -> None:
    """A source reads at least one byte; the store may have no limit, but no negative one."""
    with pytest.raises(ValidationError, match="greater than 0"):
        TailOptions(name="app", path="log", read_bytes=0)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        StoreOptions(min_free=-1)
