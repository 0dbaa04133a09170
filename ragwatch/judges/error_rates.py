"""What is known about a judge's own error: its rates on labelled families, which `training/levels.py` measures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ragwatch.judges.text_classifier import table_text
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators.level import Rates

LEXICAL, LOCAL = "lexical", "local"


@dataclass(frozen=True, slots=True)
class Family:
    """Answers of one labelled set, which are like those of one service."""

    name: str  # its name in the data, such as `summedits/news`
    good_yes: int  # of the `good` answers, as people call them, those that the judge calls good, too
    good: int
    bad_yes: int  # of the `bad` answers, those that the judge calls good
    bad: int

    @property
    def source(self) -> str:
        """The set; families of one set are alike and are left out together when coverage is measured."""
        return self.name.partition("/")[0]

    @property
    def rates(self) -> Rates:
        """Shares of good and of bad answers that the judge calls good, each as if half an answer more were so."""
        return (self.good_yes + 0.5) / (self.good + 1.0), (self.bad_yes + 0.5) / (self.bad + 1.0)


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """What was measured of a version of a judge: by quantity and name of the family, its four counts (see `Family`)."""

    version: str
    families: Mapping[str, Mapping[str, tuple[int, int, int, int]]]


@cache
def families(kind: str, quantity: str) -> tuple[Family, ...]:
    """The families on which a kind of judge was measured; empty where nothing is known.

    >>> len(families("lexical", "faithfulness")) > 15, families("claude", "faithfulness")
    (True, ())
    """
    measured = measured_rates().get(kind)
    of_quantity = {} if measured is None else measured.families.get(quantity, {})
    return tuple(Family(name, *counts) for name, counts in of_quantity.items())


@cache
def rates(kind: str, version: str) -> Mapping[Quantity, tuple[Rates, ...]]:
    """The rates of a judge on its families, by quantity; quantities without a family are left out.

    A judge of kind `local` without its model reads as `lexical` does, and has a version of that kind.
    """
    read_as = LEXICAL if kind == LOCAL and version.startswith(f"{LEXICAL}-") else kind
    known = {quantity: tuple(family.rates for family in families(read_as, str(quantity))) for quantity in Quantity}
    return MappingProxyType({quantity: measured for quantity, measured in known.items() if measured})


@cache
def measured_rates() -> Mapping[str, MeasuredRates]:
    """What was measured, by kind of judge."""
    return {kind: MeasuredRates(**rates) for kind, rates in json.loads(table_text("error_rates.json")).items()}
