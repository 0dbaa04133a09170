"""The page of a prompt: what a judge is asked, the verdict as stored, and what is missing, said plainly."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from support.asked import Reading, application, asking
from support.kit import JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence

from ragwatch.model.sample import Draw
from ragwatch.ports import Erasure
from ragwatch.statistics.verdict import Usage
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.pages.prompt_page import MAX_CHARS

VERSION = "claude-x-1"


def judged(store: SqliteStore, question: str = "why?", replies: tuple[str, ...] = ()) -> Draw:
    """One answer with a verdict of a model, and one of the embedded judge."""
    draw = a_draw("a", question=question)
    store.admit(an_admission(draw, judges=("claude", JUDGE)))
    read = an_evidence((1, 0), replies=replies)
    store.settle([a_verdict(draw, read, a_reading("claude", VERSION, Usage(100, 10, 0.1))), a_verdict(draw)])
    return draw


async def get(store: SqliteStore | None, path: str, built: dict[str, Any] | None = None) -> httpx.Response:
    """A page of an application that builds one prompt for judge `claude`."""

    def prompts(name: str, record: Mapping[str, Any]) -> dict[str, Any] | None:
        if name != "claude":
            return None
        page = {"system": "the rubric", "user": f"QUESTION {record['question']}"}
        return {"version": VERSION, "prompts": [page], "error": None} | (built or {})

    async with asking(application(store=store, prompts=prompts)) as client:
        return await client.get(path)


async def test_a_prompt_is_shown_with_its_verdict(store: SqliteStore) -> None:
    """The sample page links to it; page and JSON hold rubric, sample and verdict, and say that no reply is stored."""
    draw = judged(store)
    sample = await get(store, f"/samples/{draw.key}")
    assert f'href="{draw.key}/prompt?judge=claude"' in sample.text
    assert "prompt?judge=embedded" not in sample.text
    text = Reading((await get(store, f"/samples/{draw.key}/prompt?judge=claude")).text).text
    for expected in (
        "What claude is asked",
        "the rubric",
        "QUESTION why?",
        '"scores"',
        "No raw reply of a model is stored",
    ):
        assert expected in text, expected
    view = (await get(store, f"/api/v1/samples/{draw.key}/prompt?judge=claude")).json()
    assert (view["version"], view["in_force"], view["reply"]) == (VERSION, VERSION, None)
    assert view["prompts"] == [{"system": "the rubric", "user": "QUESTION why?"}]
    assert view["verdict"]["judge_name"] == "claude"


@pytest.mark.parametrize(
    ("built", "note"),
    [
        ({"version": "claude-y-2"}, "The verdict is by version claude-x-1; the prompt is that of claude-y-2"),
        ({"prompts": [], "error": "3 contexts, more than the 2 allowed"}, "does not read such a sample: 3 contexts"),
        ({"prompts": [{"system": "a", "user": "b"}] * 2}, "Call 2 of 2"),
        ({"prompts": [{"system": "a", "user": "b" * (MAX_CHARS + 1)}]}, "Only the beginning of 200,001 characters"),
    ],
)
async def test_what_differs_from_the_request_is_said(store: SqliteStore, built: dict[str, Any], note: str) -> None:
    """Another version in force, a sample that is refused now, several calls, a prompt that is cut."""
    draw = judged(store)
    page = await get(store, f"/samples/{draw.key}/prompt?judge=claude", built)
    assert note in " ".join(Reading(page.text).text.split())


async def test_judges_without_prompts_and_samples_without_texts(store: SqliteStore) -> None:
    """Each says why there is no prompt; without a verdict of the judge there is nothing to show."""
    draw = judged(store)
    embedded = await get(store, f"/samples/{draw.key}/prompt?judge={JUDGE}")
    assert "asks no model" in embedded.text
    for path in (
        f"{draw.key}/prompt?judge=nobody",
        f"{draw.key}/prompt",
        f"{'0' * 32}/prompt?judge=claude",
        "x/prompt",
    ):
        for prefix in ("/samples", "/api/v1/samples"):
            assert (await get(store, f"{prefix}/{path}")).status_code == 404
    store.forget(Erasure(ids=frozenset({draw.key})))
    assert "the prompt cannot be built" in (await get(store, f"/samples/{draw.key}/prompt?judge=claude")).text


async def test_the_raw_reply_is_shown(store: SqliteStore) -> None:
    """Of the judge that is asked for: the replies to all its calls, on the page and as JSON."""
    draw = judged(store, replies=('{"address":"fully"}', "and <more>"))
    text = Reading((await get(store, f"/samples/{draw.key}/prompt?judge=claude")).text).text
    assert 'Raw reply of the model\n{"address":"fully"}\n\nand <more>' in text
    assert "No raw reply" not in text
    view = (await get(store, f"/api/v1/samples/{draw.key}/prompt?judge=claude")).json()
    assert view["reply"] == '{"address":"fully"}\n\nand <more>'
    assert "No raw reply" in (await get(store, f"/samples/{draw.key}/prompt?judge={JUDGE}")).text
