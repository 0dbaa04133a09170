"""The page on which people label answers: plain forms that work without a script, one answer at a time."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from random import Random

import httpx
import pytest
from support.asked import Reading, application, asking, bearer, settled
from support.kit import AT, JUDGE, a_claim, a_draw, an_evidence
from support.snapshots import estimate, small
from unit.web.test_json_requests import ACCESS

from ragwatch.errors import ConfigError, StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Role, Turn
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.statistics.snapshot import EstimateRow
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import Access, RequestPolicy, Right
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.label_page import MAX_NOTE_CHARS, label_record
from ragwatch.web.pages.pages import ANSWER_CHARS
from ragwatch.web.pages.sample_page import MAX_CLAIMS, MAX_CONTEXTS
from ragwatch.web.server.guard import SCRIPT_POLICY

ORIGIN = {"Origin": "http://localhost"}
ANSWER = "Cats purr. They bark. They are blue."
RULES = LabelRules({JUDGE: "scripted-1"}, (JUDGE,), double=0.0, per_hour=3)


def judged(store: SqliteStore, count: int = 3, answer: str = ANSWER, **parts: object) -> list[str]:
    """Answers with three claims, of which the judge believes the first; their keys."""
    claims = [
        a_claim((1, 0), text="Cats purr.", start=0, end=10),
        a_claim((0, 0), "contradicted", text="They bark.", start=11, end=21),
        a_claim((0, 0), text="They are blue.", start=22, end=36),
    ]
    draws = [a_draw(str(number), answer=answer, at=AT - number, **parts) for number in range(count)]
    settled(store, draws, [an_evidence(*claims)] * count)
    return [draw.key for draw in draws]


def labelling(store: SqliteStore, rules: LabelRules = RULES) -> LabelTasks:
    """What asks people."""
    return LabelTasks(rules, store=store, clock=lambda: AT + 1.0, uniform=Random(1).random)


@asynccontextmanager
async def browser(
    service: LabelTasks, access: Access | None = None, headers: dict[str, str] | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies that goes where it is led."""
    level = EstimateRow(Quantity.FAITHFULNESS, "search", JUDGE, "1h", estimate(0.9), corrected=True, labels=12)
    narrow = replace(level.estimate, low=0.8, high=0.97)
    snapshot = replace(small(), corrected=(replace(level, estimate=narrow),))
    policy = RequestPolicy(access=lambda: access or Access())
    app = application(snapshot, labels=lambda: service, clock=lambda: AT + 1.0, policy=policy)
    async with asking(app, follow_redirects=True, headers={**ORIGIN, **(headers or {})}) as client:
        yield client


def fields(page: str, do: str) -> dict[str, str]:
    """Hidden fields of the form of a page that does this."""
    for form in re.findall(r"<form .*?</form>", page, re.DOTALL):
        hidden = {
            name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        }
        if hidden.get("do") == do:
            return hidden
    raise AssertionError(f"no form does {do}")


async def begun(client: httpx.AsyncClient, count: int = 3, **more: str) -> httpx.Response:
    """The page after the form with which to begin."""
    form = fields((await client.get("/label")).text, "start")
    return await client.post("/label", data={**form, "count": str(count), **more})


async def test_a_person_labels_answers_one_after_the_other(store: SqliteStore) -> None:
    """Begin, reply, save: the label is stored under the name, with the scores of its replies; the next answer shows."""
    keys = judged(store)
    async with browser(labelling(store)) as client:
        first = await begun(client, annotator="ann")
        assert "0 of 3" in Reading(first.text).text
        save = fields(first.text, "save")
        replies = {
            "c1": "s",
            "c2": "c",
            "c3": "s",
            "answer_relevancy": "p",
            "top_ranked_ignored": "y",
            "note": "a\r\nb",
        }
        second = await client.post("/label", data=save | replies)
        assert "1 of 3" in Reading(second.text).text
        assert fields(second.text, "save")["key"] != save["key"]
    (label,) = store.labels_of(save["key"], 10)
    assert (label.annotator, label.note, save["key"] in keys) == ("ann", "a\nb", True)
    assert {str(name): round(score, 2) for name, score in label.scores.items()} == {
        "faithfulness": 0.67, "contradiction": 0.33, "answer_relevancy": 0.5, "top_ranked_ignored": 0.0,
    }  # fmt: skip
    assert label.probability is not None


async def test_fifty_answers_and_two_questions_calibrate(store: SqliteStore) -> None:
    """`/label?for=calibration` asks about whole answers, goes on so after each, and shows the levels of the route."""
    judged(store)
    async with browser(labelling(store)) as client:
        start = await client.get("/label?for=calibration")
        assert 'value="50"' in start.text
        first = await client.post("/label", data={**fields(start.text, "start"), "count": "3", "annotator": "ann"})
        assert re.findall(r'<fieldset id="q-(\w+)"', first.text) == ["faithfulness", "top_ranked_ignored"]
        assert "Levels of search as of the last digest: faithfulness 0.90 (0.80–0.97, 12 labels count)" in " ".join(
            Reading(first.text).text.split()
        )
        save = fields(first.text, "save")
        second = await client.post("/label", data=save | {"faithfulness": "p", "top_ranked_ignored": "n"})
        assert "1 of 3" in Reading(second.text).text
        assert "Claim 1" not in second.text
        back = await client.post("/label", data=fields(second.text, "undo"))
        assert str(back.url).count("for=calibration") == 1
    (label,) = store.labels_of(save["key"], 10)
    assert {str(name): score for name, score in label.scores.items()} == {
        "faithfulness": 0.5,
        "top_ranked_ignored": 1.0,
    }


async def test_the_page_shows_no_verdict_and_no_label(store: SqliteStore) -> None:
    """Whoever labels second sees the answer and its claims, all marked alike; neither judges nor other people."""
    (key,) = judged(store, 1, history=(Turn(Role.USER, "I have a cat."),))
    async with browser(labelling(store)) as client:
        await begun(client, 1, annotator="ann")
        form = fields((await client.get("/label?annotator=ann")).text, "save")
        await client.post("/label", data=form | {"c1": "n", "note": "nonsense"})
        page = (await client.get(f"/label?annotator=bob&key={key}")).text
    text = " ".join(Reading(page).text.split())
    for expected in ("I have a cat.", "Cats purr.1 They bark.2 They are blue.3", "context 1", "Claim 2 They bark."):
        assert expected in text, expected
    assert set(re.findall(r"<mark([^>]*)>", page)) == {f' data-claims="{number}"' for number in (1, 2, 3)}
    assert "nonsense" not in page
    assert "checked" not in page.partition('id="help"')[0]
    assert "chosen this answer yourself" in text


async def test_undo_takes_the_last_label_back_and_shows_its_answer(store: SqliteStore) -> None:
    """A label that is undone is kept, does not count, and its answer comes again."""
    judged(store)
    async with browser(labelling(store)) as client:
        save = fields((await begun(client, annotator="ann")).text, "save")
        page = (await client.post("/label", data=save | {"c1": "s"})).text
        back = await client.post("/label", data=fields(page, "undo"))
        assert fields(back.text, "save")["key"] == save["key"]
        assert "0 of 3" in Reading(back.text).text
        assert store.labels_of(save["key"], 1)[0].revoked == AT + 1.0
        await client.post("/label", data=save | {"c1": "c"})
    (label,) = store.labels_of(save["key"], 10)
    assert (label.revoked, str(label.claims[0]), len(label.earlier)) == (None, "contradicted", 1)


async def test_who_is_known_labels_under_that_name_alone(store: SqliteStore) -> None:
    """A name in a form or an address that is not the user's is refused; nobody but the user is told what is given."""
    judged(store)
    async with browser(labelling(store), ACCESS, bearer("ann")) as client:
        page = await begun(client)
        assert "as ann" in Reading(page.text).text
        assert 'name="annotator"' not in page.text
        other = await client.post("/label", data=fields(page.text, "save") | {"annotator": "bob"})
        assert (other.status_code, "labels are stored under that name" in other.text) == (403, True)
        assert (await client.get("/label?annotator=bob")).status_code == 403
        assert (await client.post("/label", data=fields(page.text, "save"))).status_code == 200
    assert [label.annotator for label in store.labels(0.0)] == ["ann"]


async def test_readers_see_no_form(store: SqliteStore) -> None:
    """Without the right `write` there is nothing to send, and the page says why."""
    (key,) = judged(store, 1)
    async with browser(labelling(store), Access(anonymous=frozenset({Right.PAGES}))) as client:
        for path in ("/label", "/label?annotator=ann", f"/label?annotator=ann&key={key}"):
            page = (await client.get(path)).text
            assert "<form" not in page
            assert "<script" not in page
            assert "needs the right write" in " ".join(Reading(page).text.split())


async def test_the_limit_per_hour_holds_for_the_page_and_the_api_together(store: SqliteStore) -> None:
    """Beyond it the page says how many were sent and when to try again; nothing is stored."""
    keys = judged(store, 4)
    records = [{"key": key, "annotator": "ann", "at": 1.0, "scores": {}} for key in keys[:3]]
    async with browser(labelling(store), ACCESS, bearer("ann")) as client:
        assert (await client.post("/v1/labels", json={"labels": records})).status_code == 200
        save = fields((await client.get(f"/label?key={keys[3]}")).text, "save")
        refused = await client.post("/label", data=save)
    assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
    assert "ann has sent 3 in the last hour" in refused.text
    assert store.labels_of(keys[3], 1) == []


REFUSED: tuple[tuple[dict[str, str], str], ...] = (
    ({"do": "dance"}, "do: 'dance' is not known"),
    ({"key": "x"}, "key: not the key of a sample"),
    ({"c1": "maybe"}, "c1: not one of s, c, n, -"),
    ({"claims": "many"}, "claims: not the number"),
    ({"criterion.Polite?": "y"}, "is no name of a quantity"),
    ({"criterion.polite": "y"}, "polite is no quantity"),
    ({"note": "x" * (MAX_NOTE_CHARS + 1)}, "note: more than"),
    ({"annotator": ""}, "annotator: is missing"),
    ({"annotator": "\x1b"}, "annotator: not a name"),
    ({"do": "start", "count": "0"}, "count: not a whole number"),
    ({"do": "undo", "key": ""}, "key: not the key"),
)


async def test_what_a_form_does_not_offer_is_refused(store: SqliteStore) -> None:
    """The page names the field, and nothing is stored."""
    judged(store)
    async with browser(labelling(store)) as client:
        save = fields((await begun(client, annotator="ann")).text, "save")
        for changes, why in REFUSED:
            response = await client.post("/label", data=save | changes)
            assert (response.status_code, why in unescape(response.text)) == (400, True), Reading(response.text).text
    assert store.labels(0.0) == []


async def test_answers_that_cannot_be_labelled(store: SqliteStore) -> None:
    """An unknown key is a 404 that says so; with nothing judged there is nothing to label."""
    async with browser(labelling(store)) as client:
        assert "no judge has read any new answer" in (await begun(client, annotator="ann")).text
        missing = await client.get(f"/label?annotator=ann&key={'0' * 32}")
        assert (missing.status_code, "its text is deleted" in missing.text) == (404, True)
        nameless = await client.get(f"/label?key={'0' * 32}")
        assert f'name="key" value="{"0" * 32}"' in nameless.text


async def test_a_page_without_labels_and_broken_stores_say_so(store: SqliteStore) -> None:
    """Texts that are not kept, and a store that cannot be used, are told on the page."""

    class Refusing(LabelTasks):
        def tasks(self, *_: object) -> list[dict[str, object]]:
            raise ConfigError("store.texts: failing: labelling needs all texts")

        def queue(self, annotator: str) -> dict[str, object]:
            if annotator == "broken":
                raise StoreError("the disk is full")
            return super().queue(annotator)

    service = Refusing(RULES, store=store, clock=lambda: AT, uniform=lambda: 0.5)
    async with browser(service) as client:
        assert "labelling needs all texts" in (await begun(client, annotator="ann")).text
        broken = await client.get("/label?annotator=broken")
    assert (broken.status_code, "the disk is full" in broken.text) == (503, True)


async def test_scripts_are_static_and_on_this_page_alone(store: SqliteStore) -> None:
    """The page may load scripts of ours, none inline; no other page may load any."""
    judged(store)
    async with browser(labelling(store)) as client:
        page = await begun(client, annotator="ann")
        assert page.headers["content-security-policy"] == SCRIPT_POLICY
        assert "script-src 'self';" in SCRIPT_POLICY
        assert "unsafe" not in SCRIPT_POLICY
        scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page.text)
        assert scripts == [(' src="static/label.js" defer', "")]
        script = await client.get("/static/label.js")
        assert script.headers["content-type"].startswith("text/javascript")
        for path in ("/", "/static/label.js", "/drift"):
            assert "script" not in (await client.get(path)).headers["content-security-policy"]


async def test_long_answers_are_cut_and_say_so(store: SqliteStore) -> None:
    """A page has a bounded size; the form counts the claims that it does not show, which leaves no score of claims."""
    answer = "Cats purr. " * (ANSWER_CHARS // 10)
    row = (1,) * (MAX_CONTEXTS + 3)
    claims = [a_claim(row, text="Cats purr.", start=0, end=10) for _ in range(MAX_CLAIMS + 2)]
    draw = a_draw("a", answer=answer, contexts=tuple(f"context {n}" for n in range(MAX_CONTEXTS + 3)))
    settled(store, [draw], [an_evidence(*claims, relevant=(True,) * (MAX_CONTEXTS + 3))])
    async with browser(labelling(store)) as client:
        page = await client.get(f"/label?annotator=ann&key={draw.key}")
        text = " ".join(Reading(page.text).text.split())
        save = fields(page.text, "save")
    assert "2 more claims are not asked about" in text
    assert "3 more contexts are not shown" in text
    record = label_record(save | {f"c{n + 1}": "s" for n in range(MAX_CLAIMS)}, key=save["key"], annotator="ann", at=AT)
    assert (record["scores"], record["claims"][-1]) == ({}, None)


def test_replies_become_scores() -> None:
    """Yes to the use of context 1 is no ignored context; a criterion is a score under its name; `-` is none."""
    values = {"faithfulness": "f", "answer_relevancy": "-", "top_ranked_ignored": "n", "criterion.polite": "y"}
    record = label_record(values, key="0" * 32, annotator="ann", at=AT)
    assert record["scores"] == {str(Quantity.FAITHFULNESS): 1.0, "top_ranked_ignored": 1.0, "polite": 1.0}
    with pytest.raises(ParameterError, match="top_ranked_ignored: not one of y, n, -"):
        label_record({"top_ranked_ignored": "f"}, key="0" * 32, annotator="ann", at=AT)
