"""The page of causes: what is asked, which answers are read, and what is shown."""

import random
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from support.asked import XSS, Reading, get, released, settled
from support.hostile import HOSTILE
from support.kit import AT, JUDGE, a_draw, an_evidence
from support.oncall_cases import PLAN, filled

from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.sample import Draw
from ragwatch.model.stages import Stage
from ragwatch.ports import AnswerQuery, ScoreRow, Store
from ragwatch.rules import alerts
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.causes import (
    LEAST_SECONDS,
    CauseCache,
    CauseQuestion,
    causes_view,
    form,
    question_of,
    read_answers,
)
from ragwatch.web.scope import PageScope

SCOPE = PageScope(routes=("search",), thresholds={"faithfulness": 0.85, "top_ranked_ignored": 0.3})
QUESTION = CauseQuestion(since=0.0)


def broken(store: Store, count: int = 120, **parts: Any) -> list[Draw]:
    """Settle answers of two releases, of which the second one fails; `parts` are of its samples."""
    rng = random.Random(1)
    draws = []
    for number in range(count):
        new = number >= count * 2 // 3
        more = parts if new else {}
        draws.append(a_draw(f"r{number}", at=AT - count + number, **{"metadata": {"release": f"v{1 + new}"}, **more}))
    good = [rng.random() < (0.1 if number >= count * 2 // 3 else 0.95) for number in range(count)]
    settled(store, draws, [None if is_good else an_evidence((0, 0)) for is_good in good])
    return draws


def a_row(number: int, **parts: Any) -> tuple[ScoreRow, dict[str, Any] | None]:
    """A stored answer with traits."""
    fields = {"key": f"{number:032x}", "route": "search", "judge": JUDGE, "version": "1", "probability": 1.0}
    fields |= {"scores": {Quantity.FAITHFULNESS: 0.5}, "reason": None, "trace_id": None, "stage": Stage.GENERATION}
    traits: dict[str, Any] | None = {
        "metadata": {"user": "anna"},
        "words": ["tea"],
        "contexts": ["d1", None],
        "cited": [],
    }
    return ScoreRow(seq=number, at=AT + number, **{**fields, **parts}), traits  # type: ignore[arg-type]


def pages_of(rows: Iterable[tuple[ScoreRow, dict[str, Any] | None]]) -> Any:
    """A store of these rows, as pages."""
    newest = sorted(rows, key=lambda row: -row[0].seq)

    def read(query: AnswerQuery) -> Any:
        before = query.before
        return [row for row in newest if before is None or (row[0].at, row[0].seq) < before][: query.limit]

    return read


async def test_a_release_that_fails_is_named_first(store: SqliteStore) -> None:
    """As JSON by the contract, and in words on the page, with links to failing answers."""
    draws = broken(store)
    view = (await get(store, "/api/v1/causes?window=1h")).json()
    (cause,) = view["causes"]
    assert (cause["attribute"], cause["value"], cause["n"]) == ("metadata.release", "v2", 40)
    assert 0.0 <= cause["others"] < cause["low"] < cause["failing"] < cause["high"] <= 1.0
    assert (view["answers"], view["judge"], view["complete"], view["texts"]) == (120, JUDGE, True, "all")
    assert set(cause["examples"]) < {draw.key for draw in draws[80:]}
    body = (await get(store, "/causes?window=1h")).text
    text = " ".join(Reading(body).text.split())
    assert cause["text"] in text
    assert "1 cause of failing answers" in text
    assert re.findall(r'href="samples/([0-9a-f]{32})"', body) == cause["examples"]


def test_intervals_have_the_confidence_that_is_configured(store: SqliteStore) -> None:
    """On the page and in the command: a greater confidence has a wider interval."""
    broken(store)
    ends = []
    for confidence in (0.5, 0.95):
        (cause,) = causes_view(store.answers, QUESTION, replace(SCOPE, confidence=confidence))["causes"]
        ends.append((cause["low"], cause["high"]))
    narrow, wide = ends
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


async def test_without_causes_the_page_says_why(store: SqliteStore) -> None:
    """No answers is something else than nothing in common, and a wrong parameter is named."""
    assert "No judged answer of this time is stored." in (await get(store, "/causes")).text
    broken(store, 6)
    assert "No slice of the answers fails more than the rest" in (await get(store, "/causes?window=1h")).text
    wrong = await get(store, "/causes?quantity=charm")
    assert (wrong.status_code, "&#39;charm&#39; is not known; use one of: faithfulness" in wrong.text) == (400, True)
    assert (await get(store, "/api/v1/causes?window=never")).json() == {
        "error": "window: not a duration; write 15m, 24h or 7d"
    }
    assert (await get(None, "/api/v1/causes")).json()["causes"] == []


async def test_every_alerts_link_opens(store: SqliteStore) -> None:
    """With Prometheus's templates filled in, an alert leads to what its failing answers have in common."""
    broken(store)
    links = [alert.rule(PLAN)["annotations"]["causes_url"] for alert in alerts(PLAN) if alert.causes is not None]  # type: ignore[index, call-overload]
    labels = {"route": "search", "judge": JUDGE, "quantity": "faithfulness"}
    for address in sorted({filled(str(link), labels) for link in links}):
        assert "{" not in address
        where = urlsplit(address)
        answer = await get(store, f"{where.path}?{where.query}")
        assert (address, answer.status_code) == (address, 200)
        assert ("release" in answer.text) is ("=contradiction" not in address), address


def test_a_failing_answer_is_beyond_a_threshold_or_has_a_stage_at_fault() -> None:
    """By quantity: the limit that is given, else the threshold of the route; unknown without score or threshold."""
    row, _ = a_row(1)
    assert QUESTION.fails(row, SCOPE) is True
    assert QUESTION.fails(replace(row, stage=Stage.NONE), SCOPE) is False
    assert QUESTION.fails(replace(row, stage=None), SCOPE) is None
    faith = replace(QUESTION, quantity=Quantity.FAITHFULNESS)
    assert faith.fails(row, SCOPE) is True
    assert replace(faith, limit=0.5).fails(row, SCOPE) is False
    assert faith.fails(row, PageScope()) is None
    assert faith.fails(replace(row, scores=None), SCOPE) is None
    ignored = replace(QUESTION, quantity=Quantity.TOP_RANKED_IGNORED)
    assert [ignored.fails(replace(row, scores={Quantity.TOP_RANKED_IGNORED: one}), SCOPE) for one in (0.0, 1.0)] == [
        False,
        True,
    ]
    own = PageScope(thresholds={"faithfulness": 0.85}, route_thresholds={"search": {"faithfulness": 0.4}})
    assert faith.fails(row, own) is False


def test_what_is_asked() -> None:
    """Route, judge, quantity with its limit, and a time that begins at a full window."""
    pairs = [("route", "search"), ("quantity", "faithfulness"), ("below", "0.5"), ("since", "2h"), ("sort", "worst")]
    question = question_of(pairs, SCOPE, now=AT)
    assert (question.route, question.quantity, question.limit) == ("search", Quantity.FAITHFULNESS, 0.5)
    assert question.since % 7200 == 0
    assert 7200 <= AT - question.since < 14_400
    assert question_of([("since", "2023-11-14T12:00")], SCOPE, now=AT).since == 1_699_963_200.0
    assert question_of([], SCOPE, now=AT).since % 86_400 == 0
    assert question_of([("route", "")], SCOPE, now=AT).route is None
    looks = {question_of([("window", "1h")], SCOPE, now=AT - AT % 3600 + second).since for second in (0, 1800, 3599)}
    assert len(looks) == 1


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("charm", "1")], "charm: not a parameter"),
        ([("route", "a"), ("route", "b")], "route: given twice"),
        ([("window", "soon")], "window: not a duration"),
        ([("since", "soon")], "since: not a time"),
        ([("below", "0.5")], "below: needs a quantity"),
        ([("quantity", "faithfulness"), ("above", "0.5")], "is bad below a limit"),
        ([("quantity", "faithfulness"), ("above", "0.5"), ("below", "0.5")], "give below or above"),
        ([("quantity", "answer_relevancy")], "has no threshold"),
    ],
)
def test_wrong_questions_are_refused(pairs: list[tuple[str, str]], said: str) -> None:
    """The message names the parameter."""
    with pytest.raises(ParameterError, match=said):
        question_of(pairs, SCOPE, now=AT)


def test_one_verdict_of_each_answer_counts() -> None:
    """That of the judge with most verdicts; another one's where it has none."""
    rows = [a_row(number) for number in range(5)]
    rows += [(replace(row, seq=row.seq + 10, judge="other", stage=Stage.NONE), traits) for row, traits in rows[:2]]
    rows.append(a_row(20, judge="other", stage=Stage.NONE))
    read = read_answers(pages_of(rows), QUESTION, SCOPE)
    assert read.judge == JUDGE
    assert [(answer.judge, answer.failing) for answer in sorted(read.answers)] == [
        *[(f"{JUDGE} 1", True)] * 5,
        ("other 1", False),
    ]


def test_what_is_unknown_is_left_out_and_counted() -> None:
    """Answers without a stage, without traits, or with damaged ones."""
    rows = [a_row(1), a_row(2, stage=None), (a_row(3)[0], None), (a_row(4)[0], {"metadata": 7, "words": []})]
    read = read_answers(pages_of(rows), QUESTION, SCOPE)
    assert (len(read.answers), read.unknown, read.without_traits, read.complete) == (1, 1, 2, True)


def test_words_are_not_looked_at_where_texts_are_not_kept() -> None:
    """Not even those that are still stored: else failing answers alone would have words."""
    read = read_answers(pages_of([a_row(1)]), QUESTION, replace(SCOPE, texts="failing"))
    assert [(answer.traits["words"], answer.traits["metadata"]) for answer in read.answers] == [((), {})]


def test_reading_ends_in_time_and_says_so() -> None:
    """Pages are read until a limit of rows or of seconds."""
    rows = [a_row(number) for number in range(2500)]
    everything = read_answers(pages_of(rows), QUESTION, SCOPE)
    assert (len(everything.answers), everything.complete) == (2500, True)
    clock = iter([0.0, 1.0, 9.0])
    part = read_answers(pages_of(rows), QUESTION, SCOPE, clock=lambda: next(clock))
    assert (len(part.answers), part.complete) == (1000, False)
    assert min(answer.seq for answer in part.answers) == 1500


def test_what_was_found_is_kept_for_a_while() -> None:
    """Asked again soon, it is not searched for again; later, after a reload or with the clock set back, it is."""
    now, searches = [AT], []
    cache = CauseCache(lambda: now[0])

    def find() -> dict[str, Any]:
        searches.append(now[0])
        return {}

    for seconds, scope in ((0, SCOPE), (LEAST_SECONDS / 2, SCOPE), (LEAST_SECONDS / 2, PageScope()), (60, SCOPE)):
        now[0] = AT + seconds
        cache.get(QUESTION, scope, find)
    now[0] = AT - 1e6
    assert cache.get(QUESTION, SCOPE, find)["at"] == AT - 1e6
    assert len(searches) == 4
    for number in range(1, 100):
        cache.get(replace(QUESTION, since=float(number)), SCOPE, find)
    cache.get(QUESTION, SCOPE, find)  # forgotten: what is kept is bounded
    assert len(searches) == 4 + 99 + 1


def test_the_form_keeps_what_was_asked() -> None:
    """Windows keep route and quantity; quantities are those with a threshold."""
    fields = form([("route", "search"), ("quantity", "faithfulness"), ("since", "5")], SCOPE)
    assert fields["current"] == {"route": "search", "quantity": "faithfulness", "window": ""}
    assert fields["windows"][1]["address"] == "?route=search&quantity=faithfulness&window=1h"
    assert fields["quantities"] == ["faithfulness", "top_ranked_ignored"]
    assert form([], SCOPE)["current"]["window"] == "24h"


def test_criteria_are_asked_about_as_other_quantities() -> None:
    """A configured criterion with a threshold is in the form, and may be asked for; another name may not."""
    scope = PageScope(criteria=("polite",), thresholds={"polite": 0.9})
    assert form([], scope)["quantities"] == ["polite"]
    question = question_of([("quantity", "polite")], scope, now=AT)
    assert question.fails(replace(a_row(1)[0], scores={quantity_of("polite"): 0.0}), scope) is True
    with pytest.raises(ParameterError, match="quantity: 'charm' is not known; use one of"):
        question_of([("quantity", "charm")], scope, now=AT)


def test_the_samples_of_a_cause_are_those_beyond_the_limit() -> None:
    """The link to the answers has the limit of the question, and its time."""
    rows = [a_row(number) for number in range(3)]
    question = CauseQuestion(since=5.0, route="search", quantity=Quantity.TOP_RANKED_IGNORED, limit=0.5)
    address = causes_view(pages_of(rows), question, SCOPE)["samples"]
    assert dict(parse_qsl(urlsplit(address).query)) == {
        "route": "search",
        "quantity": "top_ranked_ignored",
        "above": "0.5",
        "sort": "worst",
        "since": "5",
    }


def test_x14_hostile_parameters_are_data() -> None:
    """In every parameter: refused, or a question that finds nothing."""
    for text in (*HOSTILE, XSS):
        for name in ("route", "judge", "quantity", "below", "since", "until", "window", text):
            try:
                question = question_of([(name, text)], SCOPE, now=AT)
            except ParameterError:
                continue
            assert text in (question.route, question.judge)


async def test_causes_end_with_their_incident(store: SqliteStore) -> None:
    """While answers fail the page is red; once they have not failed for long, it says when that ended."""
    released(store, [AT - 7200 - 10 * number for number in range(60)], fails=False)
    released(store, [AT - 3600 - 10 * number for number in range(60)], fails=True)
    red = (await get(store, "/causes?window=24h", scope=SCOPE)).text
    assert '<section class="banner bad">' in red
    released(store, [AT - 10 * number for number in range(60)], fails=False)
    over = (await get(store, "/causes?window=24h", scope=SCOPE)).text
    assert '<section class="banner plain">' in over
    assert "of failing answers, ended " in Reading(over).text
