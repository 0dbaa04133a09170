"""Types of the replies about answers and labels; the OpenAPI document is derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NotRequired, TypedDict

from ragwatch.model.evidence import ClaimVerdict
from ragwatch.statistics.verdict_line import ContextLine
from ragwatch.web.replies.figure_replies import Anything, Count, Key, Share, Time
from ragwatch.web.replies.json_schema import Also

Outcome = Annotated[str, Also(enum=["judged", "unjudged"])]


class ReplyClaim(TypedDict):
    """A claim; lines of older versions lack fields."""

    text: str
    start: Count | None
    end: Count | None
    verdict: ClaimVerdict
    support: Share | None
    contexts: Sequence[Count]
    joint: NotRequired[bool]
    informed: NotRequired[Sequence[Count]]
    evidence: NotRequired[str | None]
    said_by_user: NotRequired[bool]
    facts: NotRequired[Count]


class CitationLine(TypedDict):
    """A citation of an answer, and whether the context supports what cites it."""

    context: Count
    start: Count
    end: Count
    supports: bool


class CriterionLine(TypedDict):
    """What a judge says to a criterion, with the words it stands on."""

    name: str
    answer: str | None
    quote: str | None


class Verdict(TypedDict):
    """A verdict line with its place; without its texts there are the figures alone."""

    key: Key
    judge_name: str
    route: str
    at: Time
    probability: Share
    outcome: Outcome
    reason: str | None
    stage: str | None
    fault: str | None
    scores: Mapping[str, float | None] | None
    id: NotRequired[str]
    trace_id: NotRequired[str | None]
    expected: NotRequired[Mapping[str, float]]
    claims: NotRequired[Sequence[ReplyClaim]]
    contexts: NotRequired[Sequence[ContextLine]]
    missing: NotRequired[Sequence[str]]
    address: NotRequired[str | None]
    reference: NotRequired[Anything | None]
    unread: NotRequired[str | None]
    language: NotRequired[str]
    counted_as: NotRequired[str]
    judge: NotRequired[Anything]
    citations: NotRequired[Sequence[CitationLine]]
    instructions: NotRequired[Sequence[str]]
    criteria: NotRequired[Sequence[CriterionLine]]


Sample = Annotated[Anything, Also(description="a redacted record; lists hold excerpts of id, question and answer")]


class SampleRow(TypedDict):
    """A verdict with its sample."""

    verdict: Verdict
    sample: Sample | None
    error: NotRequired[str]
    truncated: NotRequired[bool]


class Samples(TypedDict):
    """A page of verdicts."""

    samples: Sequence[SampleRow]
    next: NotRequired[str]
    error: NotRequired[str]
    examined_since: NotRequired[Time]


class Feedback(TypedDict):
    """What a user said of an answer."""

    user_score: Share
    at: Time


class SampleInFull(TypedDict):
    """Everything about one answer."""

    key: Key
    verdicts: Sequence[Verdict]
    sample: Sample | None
    feedback: Feedback | None
    truncated: NotRequired[Sequence[str]]
    errors: NotRequired[Sequence[str]]


class PromptTexts(TypedDict):
    """One call to a model."""

    system: str
    user: str


class Prompt(TypedDict):
    """A verdict with the prompts behind it."""

    key: Key
    judge: str
    version: str
    in_force: str | None
    prompts: Sequence[PromptTexts]
    verdict: Anything | None
    reply: str | None
    notes: Sequence[str]


class LabelLine(TypedDict):
    """A label by a person."""

    key: str
    annotator: str
    at: Time
    scores: Mapping[str, Share]
    claims: Sequence[ClaimVerdict | None]
    probability: Share | None
    note: str
    criteria: NotRequired[Sequence[str]]
    owner: NotRequired[str]
    without: NotRequired[Mapping[str, float]]
    revoked: NotRequired[Time]
    earlier: NotRequired[Sequence[Anything]]


class Labels(TypedDict):
    """A page of labels; `picked_until` is when retention last deleted some answers and kept others."""

    labels: Sequence[LabelLine]
    picked_until: Time | None
    next: NotRequired[str]
