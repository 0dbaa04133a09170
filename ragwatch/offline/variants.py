"""Splits answers by a metadata key that names their variant, in a log or in live traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from ragwatch.config import Config
from ragwatch.errors import ConfigError
from ragwatch.model.sample import NO_METADATA
from ragwatch.offline.state_reader import MAX_VERDICTS, retention_warning, state_reader
from ragwatch.ports import Query, StoredVerdict
from ragwatch.statistics.compare_line import ComparedAnswer, answer_of
from ragwatch.terminal.given import judge_name

Item = TypeVar("Item")


class LiveVariants(NamedTuple):
    """Judged answers of two variants.

    Attributes:
        a: Answers of one variant.
        b: Answers of the other.
        warnings: Which answers are left out, and why.
    """

    a: list[ComparedAnswer]
    b: list[ComparedAnswer]
    warnings: list[str]


class _VariantVerdict(NamedTuple):
    """One verdict without its texts, to save memory. The answer is None where it was not judged."""

    metadata: Mapping[str, object]
    version: str
    answer: ComparedAnswer | None


def split_variants(
    a: str, b: str, items: Iterable[tuple[Item, Mapping[str, object]]], label: str
) -> tuple[list[Item], list[Item]]:
    """Select the items of the variants `a` and `b`, in order; `ConfigError` if one has none.

    Each item comes with its metadata, whose value under the key `label` names the variant: a string or an integer.
    """
    by_variant: dict[str, list[Item]] = {}
    for item, metadata in items:
        value = metadata.get(label)
        if isinstance(value, str | int) and not isinstance(value, bool):
            by_variant.setdefault(str(value), []).append(item)
    for variant in (a, b):
        if variant not in by_variant:
            names = ", ".join(sorted(by_variant)) or "none"
            raise ConfigError(f"{variant}: no sample has this value of {label!r} in its metadata; values: {names}")
    return by_variant[a], by_variant[b]


def live_variants(
    a: str, b: str, config: Config, *, label: str, judge: str | None, since: float, limit: int = MAX_VERDICTS
) -> LiveVariants:
    """Read the verdicts of the newest version of a judge on two variants.

    Verdicts of earlier versions are left out, because scores of different versions are not comparable. Verdicts whose
    sample retention has deleted are left out, and those of times for which it has deleted good answers first.

    Args:
        a: Name of one variant.
        b: Name of the other.
        config: Names the state directory and the judges.
        label: Metadata key that names the variant of a sample.
        judge: Its name; None for the first one.
        since: Seconds since the epoch.
        limit: Maximum number of verdicts to read, newest first.
    """
    config.require_texts("the comparison of live answers")
    name = judge_name(config, judge)
    with state_reader(config) as reader:
        until = reader.pruned_until()
        start = max(since, math.nextafter(until, math.inf))
        rows = [_variant_verdict(row) for row in reader.find(Query(judge=name, since=start, limit=limit))]
    version = next((row.version for row in rows if row.answer is not None), "")
    sides = split_variants(a, b, ((row, row.metadata) for row in rows), label)
    left_out: Counter[str] = Counter()
    compared: tuple[list[ComparedAnswer], list[ComparedAnswer]] = ([], [])
    for side, answers in zip(sides, compared, strict=True):
        for row in side:
            if row.answer is None:
                left_out["could not be judged"] += 1
            elif row.version != version:
                left_out["are of an earlier version of the judge"] += 1
            else:
                answers.append(row.answer)
    warnings = [retention_warning(until)] if until >= since else []
    warnings += [f"{count} answers {reason} and are left out" for reason, count in sorted(left_out.items())]
    if len(rows) == limit:
        warnings.append(f"only the newest {limit} verdicts were read; give a shorter --since")
    return LiveVariants(*compared, warnings)


def _variant_verdict(row: StoredVerdict) -> _VariantVerdict:
    verdict, sample = row.verdict, row.sample
    return _VariantVerdict(
        (sample or {}).get("metadata") or NO_METADATA,
        verdict.judge_version,
        answer_of(verdict, sample) if verdict.judged and sample is not None else None,
    )
