"""`ragwatch export --failing`: one failing answer a question, as rows of `gate`, RAGAS or DeepEval, or as canaries."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from heapq import merge
from typing import NamedTuple

import click

from ragwatch.config import Config
from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import canonical
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity, is_worse, quantity_of
from ragwatch.model.sample import Role, Sample
from ragwatch.model.stages import FAULTS, Stage
from ragwatch.offline.causes import page_scope
from ragwatch.offline.state_reader import MAX_VERDICTS, labels_by_key, verdicts
from ragwatch.offline.suggest import MAX_SIMPLE_CONTEXTS, RIGHT_FROM, expected_context, mean_label
from ragwatch.ports import Query, StoredVerdict
from ragwatch.redaction.redactor import Redactor
from ragwatch.statistics.canary.definition import (
    REDACTED,
    Canary,
    Category,
    Expected,
    canary_lines,
    comment_line,
    name_of,
)
from ragwatch.statistics.compare import key_of
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.verdict_line import VerdictRecord
from ragwatch.stores.kept_texts import Texts
from ragwatch.terminal.given import judge_name, seconds_of, write_new
from ragwatch.terminal.options.offline import ExportArguments
from ragwatch.terminal.output import moment, say
from ragwatch.web.scope import PageScope

NOTHING_STORED = 3
UNSTORED = "without stored texts"  # not stored, damaged, or without a question
RIGHT = "labelled by people as right"
REPEATED = "to a question that is there already"


@dataclass(frozen=True, slots=True)
class FailingAnswer:
    """A failing answer: its verdict, and its sample, redacted."""

    verdict: VerdictRecord
    sample: Sample


def export_failing(config: Config, kind: str, given: ExportArguments) -> int:
    """Write the failing answers in the store of a configuration. Returns 0, or 3 if there are none."""
    if config.texts == Texts.NONE:
        raise ConfigError("store.texts: is none, so that no texts are kept; set it to failing, and wait for answers")
    judge = judge_name(config, given.judge)
    names = (*map(str, Quantity), *(criterion.name for criterion in config.settings.criteria))
    if given.quantity not in (None, *names):
        raise ConfigError(f"--quantity {given.quantity}: is not a quantity; use one of: {', '.join(names)}")
    since = None if given.since is None else time.time() - seconds_of(f"--since {given.since}", given.since)
    if given.out is not None and given.out.exists():
        raise ConfigError(f"--out {given.out}: already exists and is not overwritten")
    judged = Query(judge=judge, outcome="judged", since=since, limit=MAX_VERDICTS)
    quantity = None if given.quantity is None else quantity_of(given.quantity)
    answers, left_out, limited = read_failing(config, judged, quantity, frozenset(given.routes), given.limit)
    regression = regression_set(kind, answers)
    for reason, count in {**left_out, **regression.left_out}.items():
        if count:
            say(f"left out: {count} answers {reason}")
    if limited:
        say("there are more questions: these are the newest; see --limit")
    if not regression.rows:
        say("no failing answer is stored of which this can be made; nothing was written")
        return NOTHING_STORED
    if given.out is None:
        click.echo(regression.text.encode("utf-8", "replace"), nl=False)  # a log may contain lone surrogates
    else:
        write_new(given.out, regression.text, 0o600)
        say(f"wrote {regression.rows} questions to {given.out}")
    return 0


def read_failing(
    config: Config, judged: Query, quantity: Quantity | None, routes: frozenset[str], limit: int
) -> tuple[list[FailingAnswer], Counter[str], bool]:
    """Read failing answers from the state of a configuration, one for each question and sorted by it.

    `judged` selects the verdicts. Failing is a score of the quantity beyond its threshold; without one, any stage at
    fault. No routes are all routes; `limit` is a number of questions. Also returned are how many answers are left out,
    by reason, and whether there are more questions.
    """
    scope = page_scope(config)
    labels = _counted_labels(config)
    redactor = config.settings.redaction.redactor() or Redactor()
    left_out = Counter(dict.fromkeys((UNSTORED, RIGHT, REPEATED), 0))
    limited = False
    by_question: dict[str, FailingAnswer] = {}
    with ExitStack() as stack:
        parts = _queries(judged, quantity, routes, scope)
        walks = [stack.enter_context(closing(verdicts(config, part))) for part in parts]
        for stored in merge(*walks, key=lambda stored: -stored.verdict.at):
            verdict, route = stored.verdict, stored.verdict.route
            if routes and route not in routes:
                continue
            if quantity is not None:  # else the query of the store selects the stages
                score = verdict.scores.get(quantity)
                if score is None or not _is_beyond(score, quantity, scope.threshold(quantity, route)):
                    continue
            if _labelled_right(labels.get(verdict.key, ()), route, quantity, scope):
                left_out[RIGHT] += 1
                continue
            sample = _sample(stored, config.texts, redactor)
            if sample is None:
                left_out[UNSTORED] += 1
                continue
            key = key_of(sample.question, sample.id, sample.user_turns)
            if key in by_question:
                left_out[REPEATED] += 1
            elif len(by_question) >= limit:
                limited = True
                break
            else:
                by_question[key] = FailingAnswer(verdict, sample)
    return [by_question[key] for key in sorted(by_question)], left_out, limited


def _queries(judged: Query, quantity: Quantity | None, routes: frozenset[str], scope: PageScope) -> Iterator[Query]:
    """Queries of the store that together return the failing answers, and maybe others."""
    if len(routes) == 1:
        judged = replace(judged, route=min(routes))
    if quantity is None:
        yield from (replace(judged, stage=str(stage)) for stage in FAULTS)
        return
    names = routes or {*scope.routes, *scope.route_thresholds, ""}
    limits = [limit for name in names if (limit := scope.threshold(quantity, name)) is not None]
    if not limits:
        raise ConfigError(f"--quantity {quantity}: has no threshold; add one to `thresholds`")
    scored = replace(judged, quantity=quantity)
    yield replace(scored, above=min(limits)) if quantity in LOW_IS_GOOD else replace(scored, below=max(limits))


def _is_beyond(score: float, quantity: Quantity, limit: float | None) -> bool:
    return limit is not None and is_worse(quantity, score, score, limit)


def _labelled_right(labels: Sequence[Label], route: str, quantity: Quantity | None, scope: PageScope) -> bool:
    """Whether people have labelled an answer as right, by the mean of their scores."""
    if quantity is not None:
        mean, limit = mean_label(labels, quantity), scope.threshold(quantity, route)
        return mean is not None and not _is_beyond(mean, quantity, limit)
    means = ((mean_label(labels, quantity), least) for quantity, least in RIGHT_FROM.items())
    return all(mean is not None and mean >= least for mean, least in means)


def _sample(stored: StoredVerdict, kept: str, redactor: Redactor) -> Sample | None:
    """The sample, redacted; None if its texts are not kept or cannot be read, or there is no question."""
    failing = stored.verdict.stage not in (None, Stage.NONE)
    if stored.sample is None or (kept == Texts.FAILING and not failing):
        return None
    try:
        sample = canonical.read(stored.sample, stored.verdict.id)
    except FormatError:
        return None
    return None if sample.question is None else redactor.redact_sample(sample)[0]


def _counted_labels(config: Config) -> Mapping[str, list[Label]]:
    left_out = frozenset(config.settings.labels.leave_out)
    return {
        key: [label for label in labels if label.revoked is None and label.annotator not in left_out]
        for key, labels in labels_by_key(config).items()
    }


TAG = "regression"
_RAGAS_ROLES: Mapping[Role, str] = {Role.USER: "human", Role.ASSISTANT: "ai"}
_HEAD = (
    "# Questions with failing answers. Review each canary: keep it, correct what it expects, or delete it.",
    "# Contexts that the retriever never returned are missing: add them.",
)


class RegressionSet(NamedTuple):
    """A regression set as text, empty without a row, and how many answers the format cannot hold, by reason."""

    text: str
    rows: int
    left_out: Mapping[str, int]


def regression_set(kind: str, answers: Sequence[FailingAnswer]) -> RegressionSet:
    """Write answers in a format, in their order."""
    if kind == "canaries":
        return _suite(answers)
    rows = [row for answer in answers if (row := ROWS[kind](answer.sample)) is not None]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return RegressionSet(text, len(rows), {"need their conversation": len(answers) - len(rows)})


def gate_row(sample: Sample) -> dict[str, object]:
    """Return the canonical record of a sample, without its time and metadata."""
    return {name: value for name, value in sample.to_record().items() if name not in ("at", "metadata")}


def ragas_row(sample: Sample) -> dict[str, object]:
    """Return the RAGAS record of a sample; a conversation is a list of messages."""
    ids = [context.id for context in sample.contexts]
    turns = [
        {"type": _RAGAS_ROLES[turn.role], "content": turn.text} for turn in sample.history if turn.role in _RAGAS_ROLES
    ]
    asked = sample.question
    return {
        "id": sample.id,
        "user_input": [*turns, {"type": "human", "content": asked}] if turns else asked,
        "response": sample.answer,
        "retrieved_contexts": [context.text for context in sample.contexts],
        **({"retrieved_context_ids": ids} if ids and all(ids) else {}),
        "reference": sample.reference,
        "route": sample.route,
    }


def deepeval_row(sample: Sample) -> dict[str, object] | None:
    """Return the DeepEval test case of a sample; None for a follow-up question, which means nothing alone."""
    if sample.history:
        return None
    return {
        "id": sample.id,
        "input": sample.question,
        "actual_output": sample.answer,
        "retrieval_context": [context.text for context in sample.contexts],
        "expected_output": sample.reference,
        "route": sample.route,
    }


ROWS: Mapping[str, Callable[[Sample], Mapping[str, object] | None]] = {
    "gate": gate_row,
    "ragas": ragas_row,
    "deepeval": deepeval_row,
}


def _suite(answers: Iterable[FailingAnswer]) -> RegressionSet:
    lines: list[str] = []
    names: set[str] = set()
    left_out: Counter[str] = Counter()
    for answer in answers:
        question = answer.sample.question or ""
        expected, by_people = _expected(answer)
        if answer.sample.history:
            left_out["need their conversation"] += 1
        elif REDACTED.search(question):
            left_out["redacted questions"] += 1
        elif not expected and not by_people:
            left_out["without a context that is known as relevant"] += 1
        else:
            canary = _canary(answer.sample, expected, names)
            names.add(canary.name)
            verdict = answer.verdict
            stage = f"stage at fault {verdict.stage or 'unknown'}, by {verdict.judge}, {moment(verdict.at)}"
            by = f"relevant by {'people' if by_people else verdict.judge}"
            lines += [comment_line(stage), comment_line(by), *canary_lines(canary)]
    text = "\n".join([*_HEAD, "items:", *lines, ""]) if lines else ""
    return RegressionSet(text, len(names), left_out)


def _canary(sample: Sample, expected: tuple[Expected, ...], names: set[str]) -> Canary:
    simple = len(expected) <= MAX_SIMPLE_CONTEXTS
    category = Category.SIMPLE_FACTUAL if simple else Category.COMPLEX_FACTUAL
    query = " ".join((sample.question or "").split())
    return Canary(
        name_of(query, names),
        query,
        expected,
        category if expected else Category.NEGATIVE,
        reference=sample.reference,
        tags=(TAG,),
    )


def _expected(answer: FailingAnswer) -> tuple[tuple[Expected, ...], bool]:
    """The contexts that are relevant to a question, and whether people said so, or else the judge."""
    relevant = answer.sample.relevant
    if relevant is not None:
        known = [expected_context(one.id, one.text, one.grade) for one in relevant]
        usable = tuple(one for one in known if one is not None)
        return usable, bool(usable) or not relevant
    pairs = zip(answer.sample.contexts, answer.verdict.contexts, strict=False)
    by_judge = dict.fromkeys(expected_context(context.id, context.text) for context, read in pairs if read.relevant)
    return tuple(one for one in by_judge if one is not None), False
