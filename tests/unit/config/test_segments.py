"""The section `segments`: what is valid, what is refused and how, and how many series it makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragwatch.commands.check_settings import setting_notes
from ragwatch.config import Config, parse
from ragwatch.core.segments import Segments
from ragwatch.errors import ConfigError

HERE = Path()


def parsed(segments: object, **sections: Any) -> Config:
    """A configuration with this section."""
    return parse({"sources": [{"kind": "push", "name": "app"}], "segments": segments, **sections}, folder=HERE)


def test_values_are_texts() -> None:
    """Numbers and booleans are compared as JSON writes them; without the section nothing is split."""
    settings = parsed({"release": ["v1", 2, True], "user.tier": ["free"]}).settings
    assert settings.segment_rules == Segments({"release": ("v1", "2", "true"), "user.tier": ("free",)})
    assert parsed({}).settings.segment_rules == Segments()
    assert list(setting_notes(parsed({}))) == []


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ({"release": []}, "segments.release: "),
        ({"release": "v1"}, "segments.release: "),
        ({"release": ["v1", "v1"]}, "segments.release: 'v1' is named twice"),
        ({"release": ["other"]}, "segments.release: 'other' is what all values"),
        ({"release": [1.1]}, "segments.release[0]: 1.1 is read as a number, and 1.10 as 1.1; write it in quotes"),
        ({"release": [" v1"]}, "begins or ends with a space"),
        ({"release": ["a\nb"]}, "segments.release[0]: "),
        ({"a key": ["v1"]}, "segments.a key"),
        (["release"], "segments: "),
    ],
)
def test_what_is_wrong_is_named(segments: object, message: str) -> None:
    """Every error begins with the key."""
    with pytest.raises(ConfigError) as error:
        parsed(segments)
    assert message in str(error.value)
    assert str(error.value).startswith("segments")


def test_the_number_of_series_is_stated_and_limited() -> None:
    """`check` states it; too many are refused, with the number and what to change."""
    ((key, well, text),) = setting_notes(parsed({"tier": ["free", "paid"]}, routes=["search", "support"]))
    assert (key, well) == ("segments", True)
    assert text.startswith("exported as up to 1,722 series of at most 20,000 (3 values with `other`, 3 routes")
    values = [f"v{index}" for index in range(200)]
    with pytest.raises(ConfigError, match=r"^segments: would be exported as .* series .*; give fewer values"):
        parsed({"release": values})
