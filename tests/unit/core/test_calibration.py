"""Calibration: a judge beside people."""

from __future__ import annotations

import pytest

from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.agreement import Agreement, TooFewLabels
from ragwatch.core.labels.calibration import LabelledClaim, LabelledScore, report, traffic_agreement
from ragwatch.model.quantities import Quantity

F = Quantity.FAITHFULNESS
YES, NO = ClaimVerdict.SUPPORTED, ClaimVerdict.NOT_IN_CONTEXT


def pairs(good: int, bad: int) -> list[LabelledScore]:
    """Answers on which judge and people agree, and on which they do not."""
    return [LabelledScore(f"g{index}", 1.0, 1.0, 0.1) for index in range(good)] + [
        LabelledScore(f"b{index}", 0.5, 1.0 if index % 2 else 0.0, 0.4) for index in range(bad)
    ]


def test_nothing_is_concluded_from_few() -> None:
    """Twenty labels are too few: how many more is said, and no figure is given."""
    result = report({F: pairs(15, 5)}, [], [])
    labelled = result.quantities[F].labelled
    assert isinstance(labelled, TooFewLabels)
    assert (result.conclusive, result.quantities[F].traffic, result.people, result.claims) == (False, None, None, None)
    assert result.missing == labelled.missing > 30


def test_what_enough_labels_tell() -> None:
    """Agreement on the labelled ones is a share; in traffic it is weighted; the worst misses come first."""
    claims = (
        [LabelledClaim(YES, 0.9, YES)] * 90 + [LabelledClaim(YES, 0.8, NO)] * 10 + [LabelledClaim(NO, None, NO)] * 100
    )
    result = report({F: pairs(80, 40), Quantity.CONTRADICTION: []}, claims, [(1.0, 1.0)] * 70 + [(1.0, 0.0)] * 5)
    (only,) = result.quantities.values()
    assert isinstance(only.labelled, Agreement)
    assert only.labels == 120
    assert only.labelled.agreement.value == pytest.approx(80 / 120)
    assert only.traffic is not None
    assert only.traffic.value == pytest.approx(800 / 900)
    assert [pair.difference for pair in only.worst] == [0.5] * 10
    assert result.conclusive
    assert result.missing == 0
    assert result.claims is not None
    assert isinstance(result.claims.labelled, Agreement)
    assert result.claims.error == pytest.approx(0.17)  # of ten, nine were said to be .9 and are 1, one .8 and is 0
    assert isinstance(result.people, Agreement)


def test_all_labels_count_where_few_have_a_probability() -> None:
    """Labels from elsewhere say something of the judge too."""
    known = [LabelledScore("a", 1.0, 1.0, 0.1)] + [LabelledScore(str(index), 0.0, 1.0) for index in range(9)]
    result = traffic_agreement(known, minimum=5)
    assert result is not None
    assert result.value == pytest.approx(0.1)
    assert result.n == 10
