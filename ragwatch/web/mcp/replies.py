"""Types of what tools return. Their schemas and rows are derived from them: a type says what stands in the fence."""

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Annotated, Any, TypedDict, cast

from ragwatch.web.json_values import Also
from ragwatch.web.pages.drift_replies import ChangedStage
from ragwatch.web.pages.figure_replies import Difference, Interval, Mean, SideMean

NAME_CHARS, EXCERPT_CHARS = 80, 160


class Fenced(Also):
    """A text that others wrote: it stands in the fence, cut to so many characters."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit


class Named(Also):
    """A name of a quantity: our own ones stand as they are, those of configured criteria in the fence."""


class Dated(Also):
    """An instant in UTC as ISO 8601, of seconds since the epoch."""


Foreign = Annotated[str | None, Fenced(NAME_CHARS)]
Sentence = Annotated[str | None, Fenced(200)]
Excerpt = Annotated[str | None, Fenced(EXCERPT_CHARS)]
Passage = Annotated[str | None, Fenced(300)]
Name = Annotated[str | None, Named()]
Instant = Annotated[str | None, Dated()]

_FIELDS: Mapping[object, str] = {
    Foreign: "route judge source suite canary segment words id",
    Name: "name quantity",
    Instant: "at since until begin end ended",
    Sentence: "headline detail",
    Excerpt: "question answer query",
    Passage: "text",
    str: "fence state kind window range span verdict outcome problem key stage",
    str | None: "page more why reason fault conclusion attribute",
    Sequence[str]: "windows examples",
    bool: "calibrated judge_moved complete",
    bool | None: "lower_is_better relevant used",
    int: "n alarms labels answers slices degraded failed wrong rank step_seconds",
    float: "sampled judged waiting seen",
    float | None: (
        "value low high threshold before now failing others explains share usual score support user_score recall mrr "
        "health lag_seconds unreadable_files"
    ),
    Mapping[str, float]: "unjudged rejected",
}
"""Types of fields by their name; a row names the type of a field only where it has another one."""
_TYPES = {name: hint for hint, names in _FIELDS.items() for name in names.split()}
_typed_dict: Any = TypedDict


def row(kind: str, fields: str, /, **own: object) -> type:
    """Returns the type of rows with these fields, in this order; `own` are types that other rows do not have."""
    types = _TYPES | own
    return cast("type", _typed_dict(kind, {field: types[field] for field in fields.split()}))


def reply(kind: str, fields: str, /, **own: object) -> type:
    """Returns the type of a reply, which has the name of its fence, its page, and the cursor of the rest, too."""
    return row(kind, f"fence page more {fields}", **own)


def many(one: object) -> GenericAlias:
    """Returns the type of a list."""
    return GenericAlias(Sequence, (one,))


class LevelLine(Interval):
    """A level, the labels behind it, and whether they have made it narrow."""

    labels: int
    calibrated: bool


# No quantity where the judge has no figure at all.
FigureLine = row(
    "FigureLine",
    "route judge quantity state value low high n level change threshold lower_is_better why",
    level=LevelLine | None,
    change=Difference | None,
)
StageLine = row("StageLine", "stage share usual", share=float)
RouteLine = row("RouteLine", "route state drift sampled stages", drift=many(Name), stages=many(StageLine))
JudgeLine = row("JudgeLine", "judge judged waiting unjudged")
SourceLine = row("SourceLine", "source seen rejected lag_seconds unreadable_files")
Status = reply(
    "Status",
    "at window windows state headline alarms problems routes judges sources figures",
    problems=many(Sentence),
    routes=many(RouteLine),
    judges=many(JudgeLine),
    sources=many(SourceLine),
    figures=many(FigureLine),
)

AlarmLine = row(
    "AlarmLine",
    "kind name route segment value since before now low high n stage words judge_moved",
    value=Foreign,
    n=float | None,
    stage=ChangedStage | None,
)
EventLine = row("EventLine", "at kind detail", kind=Foreign)
Alarms = reply("Alarms", "at headline alarms events", alarms=many(AlarmLine), events=many(EventLine))

PointLine = row("PointLine", "at value low high n", n=int | None)
TrendLine = row("TrendLine", "name kind mean threshold lower_is_better last", mean=Mean | None, last=PointLine | None)
Trend = reply(
    "Trend",
    "route suite range since until step_seconds trends points events",
    trends=many(TrendLine),
    points=many(PointLine),
    events=many(EventLine),
)

ComparedLine = row(
    "ComparedLine",
    "name lower_is_better before after difference conclusion why",
    lower_is_better=bool,
    before=SideMean | None,
    after=SideMean | None,
    difference=Difference | None,
)
Compared = reply(
    "Compared",
    "at route span begin end state headline rows events",
    headline=str,
    rows=many(ComparedLine),
    events=many(EventLine),
)

SilentLine = row("SilentLine", "name route why", why=str)
CannotPage = reply(
    "CannotPage",
    "failures unwatched",
    failures=many(Annotated[str | None, Fenced(400)]),
    unwatched=many(SilentLine),
)

CauseLine = row(
    "CauseLine",
    "attribute value text failing low high others n explains since until ended examples explains_too",
    value=Foreign,
    explains_too=many(Foreign),
)
Causes = reply(
    "Causes",
    "route quantity judge since until answers failing share slices complete why causes",
    failing=int,
    causes=many(CauseLine),
)

_PLACE = "key at route judge stage fault page"
AnswerLine = row("AnswerLine", f"{_PLACE} score question answer", stage=str | None)
WorstAnswers = reply("WorstAnswers", "quantity answers", answers=many(AnswerLine))

ClaimLine = row(
    "ClaimLine", "text verdict support contexts", text=Annotated[str | None, Fenced(240)], contexts=many(int)
)
ContextLine = row("ContextLine", "rank id text score relevant used")
PairLine = row("PairLine", "name value", name=Foreign, value=Foreign)
# The texts of an answer are on the first page of the reply alone.
AnswerInFull = reply(
    "AnswerInFull",
    f"{_PLACE} outcome reason user_score scores question answer why missing metadata claims contexts",
    stage=str | None,
    scores=Mapping[str, float | None],
    question=Annotated[str | None, Fenced(400)],
    answer=Annotated[str | None, Fenced(1000)],
    missing=many(Excerpt),
    metadata=many(PairLine),
    claims=many(ClaimLine),
    contexts=many(ContextLine),
)

SuiteLine = row("SuiteLine", "suite state at n degraded failed wrong recall mrr health")
CanaryLine = row(
    "CanaryLine",
    "suite canary problem query detail missing came",
    detail=str | None,
    missing=many(Foreign),
    came=many(Foreign),
)
Canaries = reply(
    "Canaries", "state headline suites canaries", headline=str, suites=many(SuiteLine), canaries=many(CanaryLine)
)
