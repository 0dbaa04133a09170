"""What is known of Claude models, from a dated table: prices, how thinking is turned off, and which are retired."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, NamedTuple

from ragwatch.errors import ConfigError
from ragwatch.judges.llm.calls.prices import Prices

TABLE = "claude_models.json"
_SNAPSHOT = re.compile(r"[-@]20\d{6}$")  # the date of a model snapshot


class Thinking(StrEnum):
    """How the thinking of a model is turned off."""

    DISABLED = "disabled"  # by this value of `thinking.type`, at efforts up to `high`
    BETWEEN_TOOLS = "between_tools"  # by this value, at efforts up to `high`; without tools nothing is thought
    ALWAYS = "always"  # not at all
    ON_REQUEST = "on_request"  # it is off unless requested


class KnownModel(NamedTuple):
    """What is known of a model."""

    thinking: Thinking
    prices: Prices


@cache
def known_models() -> Mapping[str, KnownModel]:
    """The models of the table, by name without the date of a snapshot."""
    return MappingProxyType(
        {
            name: KnownModel(Thinking(facts["thinking"]), Prices.model_validate(facts["prices"]))
            for name, facts in _table()["models"].items()
        }
    )


@cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(
        (resources.files("ragwatch.judges") / "tables" / TABLE).read_text(encoding="utf-8")
    )
    return table


def retired_on(name: str) -> str | None:
    """Day (YYYY-MM-DD) from which a model answers no more, as its maker announced; None for any other model.

    >>> retired_on("claude-3-sonnet-20240229")
    '2025-07-21'
    """
    day = _table()["retired"].get(name)
    return None if day is None else str(day)


def known_model(name: str) -> KnownModel | None:
    """What is known of a model, or of the model that a dated snapshot is of; None for an unknown one."""
    return known_models().get(_SNAPSHOT.sub("", name))


def prices_of(model: str, configured: Prices | None, *, allow_unknown: bool, where: str) -> Prices | None:
    """Prices of a model: the configured ones, else those of the table; None when an unknown price is allowed.

    Args:
        model: Name of the model.
        configured: Prices in the configuration.
        allow_unknown: Whether the price may be unknown.
        where: Path of the judge in the configuration, for the message.

    Raises:
        ConfigError: The price is unknown and must not be, or the model is retired.
    """
    if configured is not None:
        return configured
    known = known_model(model)
    if known is None and not allow_unknown and (day := retired_on(model)) is not None:
        raise ConfigError(
            f"{where}.model: {model!r} is retired: its maker ended it on {day}; name another one such as "
            f"{next(iter(known_models()))}, or give `prices` if somebody else still serves it"
        )
    if known is None and not allow_unknown:
        raise ConfigError(
            f"{where}.prices: the price of {model!r} is not known; give {{input, output}} in US dollars per million "
            "tokens (0 for a model of your own), or `allow_unknown_price: true` to count tokens only"
        )
    return None if known is None else known.prices
