"""Variants: answers that one label of their metadata tells apart, in a log or in live traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ragwatch.commands.stored import LATEST, picked_line, picked_until, verdicts
from ragwatch.config import Config
from ragwatch.core.compare_line import ComparedAnswer, answer_of
from ragwatch.core.sample import NOTHING
from ragwatch.errors import ConfigError
from ragwatch.ports import Query, StoredVerdict

Thing = TypeVar("Thing")


class LiveVariants(NamedTuple):
    """What a judge has read of two variants.

    Attributes:
        a: Answers of one variant.
        b: Answers of the other.
        warnings: What is left out.
    """

    a: list[ComparedAnswer]
    b: list[ComparedAnswer]
    warnings: list[str]


class _VariantVerdict(NamedTuple):
    """One verdict, without its texts: there are many. The answer is None where it was not judged."""

    metadata: Mapping[str, Any]
    version: str
    answer: ComparedAnswer | None


def told_apart(
    a: str, b: str, things: Iterable[tuple[Thing, Mapping[str, Any]]], label: str
) -> tuple[list[Thing], list[Thing]]:
    """The things of each of two variants, in order.

    Args:
        a: Name of one variant.
        b: Name of the other.
        things: Each with its metadata.
        label: Where the metadata names the variant: a text or a number.

    Raises:
        ConfigError: A variant has nothing.
    """
    found: dict[str, list[Thing]] = {}
    for thing, metadata in things:
        named = metadata.get(label)
        if isinstance(named, str | int) and not isinstance(named, bool):
            found.setdefault(str(named), []).append(thing)
    for each in (a, b):
        if each not in found:
            known = ", ".join(sorted(found)) or "none is named"
            raise ConfigError(f"{each}: no sample has it as {label!r} in its metadata; there are: {known}")
    return found[a], found[b]


def live(
    a: str, b: str, config: Config, *, label: str, judge: str | None, since: float, most: int = LATEST
) -> LiveVariants:
    """What the newest version of one judge has read of two variants since an instant.

    Verdicts whose sample retention has taken are left out, with those of earlier versions: they share no mean. So are
    those of times from which retention has taken the good ones first.

    Args:
        a: Name of one variant.
        b: Name of the other.
        config: Names the state and the judges.
        label: Where the metadata of a sample names its variant.
        judge: Its name; None for the default one.
        since: Seconds since the epoch.
        most: Verdicts that are looked at, the newest first.

    Raises:
        ConfigError: The judge is not configured, or a variant has nothing.
        StoreError: There is no state to read.
    """
    names = [each.place.name for each in config.judges]
    name = judge or names[0]
    if name not in names:
        raise ConfigError(f"--judge {name}: is not configured; use one of: {', '.join(names)}")
    until = picked_until(config)
    first = max(since, math.nextafter(until, math.inf))
    seen = [_seen(each) for each in verdicts(config, Query(judge=name, since=first, limit=most))]
    version = next((each.version for each in seen if each.answer is not None), "")
    sides = told_apart(a, b, ((each, each.metadata) for each in seen), label)
    left_out: Counter[str] = Counter()
    counted: tuple[list[ComparedAnswer], list[ComparedAnswer]] = ([], [])
    for side, answers in zip(sides, counted, strict=True):
        for each in side:
            if each.answer is None:
                left_out["could not be judged"] += 1
            elif each.version != version:
                left_out["are of an earlier version of the judge"] += 1
            else:
                answers.append(each.answer)
    told = [picked_line(until)] if until >= since else []
    told += [f"{count} answers {why} and are left out" for why, count in sorted(left_out.items())]
    if len(seen) == most:
        told.append(f"only the newest {most} verdicts were looked at; give a shorter --since")
    return LiveVariants(*counted, told)


def _seen(found: StoredVerdict) -> _VariantVerdict:
    line, sample = found.verdict, found.sample or NOTHING
    judged = line["outcome"] == "judged" and found.sample is not None
    return _VariantVerdict(
        sample.get("metadata") or NOTHING, str(line["judge"]["version"]), answer_of(line, sample) if judged else None
    )
