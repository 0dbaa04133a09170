"""The search page: links of alerts open, no verdict is skipped, and errors are shown."""

import re
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from support.asked import XSS, Reading, get, judged, settle, settled
from support.hostile import SEARCHES, STRUCTURED
from support.kit import AT, JUDGE, a_claim, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.oncall_cases import PLAN, filled

from ragwatch.model.sample import Context
from ragwatch.rules import alerts
from ragwatch.stores.sqlite import sqlite_search
from ragwatch.stores.sqlite.store import SqliteStore


def keys_on(body: str) -> list[str]:
    """Keys of the answers on a page, in its order."""
    return re.findall(r'href="samples/([0-9a-f]{32})\?judge=', body)


def link(body: str, rel: str = ' rel="next"') -> str | None:
    """The query of the link to older answers."""
    match = re.search(rf'<a href="(\?[^"]*)"{rel}>', body)
    return None if match is None else unescape(match[1])


async def test_every_alerts_link_opens(store: SqliteStore) -> None:
    """With Prometheus's templates filled in, an alert leads to a page that shows what it is about."""
    bad = judged(store, a_draw("bad"), an_evidence(a_claim((0, 0), "contradicted")))
    settle(store, ["good"], route="support")
    links = [alert.rule(PLAN)["annotations"]["samples_url"] for alert in alerts(PLAN) if alert.samples is not None]  # type: ignore[index, call-overload]
    labels = {"route": "search", "judge": JUDGE, "quantity": "faithfulness"}
    for address in sorted({filled(str(link), labels) for link in links}):
        assert "{" not in address
        where = urlsplit(address)
        answer = await get(store, f"{where.path}?{where.query}")
        assert (address, answer.status_code) == (address, 200)
        assert keys_on(answer.text) == ([] if "outcome=unjudged" in address else [bad.key]), address


async def test_rows_are_newest_first_and_say_what_matters(store: SqliteStore) -> None:
    """Time, route, judge, stage or reason, scores and question of each; unknown is a dash, not a zero."""
    draws = [a_draw(name, at=AT - age) for name, age in (("new", 0), ("missed", 60), ("old", 90))]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draws[0]), an_unjudged(draws[1]), a_verdict(draws[2], an_evidence((0, 0)))])
    body = (await get(store, "/samples")).text
    assert keys_on(body) == [draw.key for draw in draws]
    text = Reading(body).text
    for expected in ("just now", "unjudged: timeout", "generation", "What do cats do?", "3 verdicts shown"):
        assert expected in text
    missed = body.split("unjudged: timeout")[1].split("</tr>")[0]
    assert (missed.count("–"), "0.00" in missed) == (3, False)
    assert "these are all" in text
    assert 'title="2023-11-14 22:13:20 UTC"' in body


async def test_the_worst_come_first_if_asked_for(store: SqliteStore) -> None:
    """By the score of a quantity, whichever side of it is bad; ties are newest first, and the page says so."""
    ages = {"good": 0, "worst": 60, "bad": 30, "tied": 90}
    draws = {name: a_draw(name, at=AT - age) for name, age in ages.items()}
    claims = {"good": ((1, 0),), "worst": ((0, 0),), "bad": ((1, 0), (0, 0)), "tied": ((1, 0), (0, 0))}
    settled(store, list(draws.values()), [an_evidence(*claims[name]) for name in draws])
    answer = await get(store, "/samples?quantity=faithfulness&sort=worst&limit=3")
    assert keys_on(answer.text) == [draws[name].key for name in ("worst", "bad", "tied")]
    assert "the worst first" in Reading(answer.text).text
    assert (await get(store, "/samples?sort=worst")).status_code == 400
    assert (await get(store, "/samples?quantity=faithfulness&sort=best")).status_code == 400
    listed = await get(store, "/api/v1/samples?quantity=faithfulness&sort=worst&limit=1")
    assert [row["verdict"]["key"] for row in listed.json()["samples"]] == [draws["worst"].key]
    assert (await get(store, "/api/v1/samples?quantity=faithfulness&sort=worst&texts=true")).status_code == 400


async def test_a_filter_is_shown_and_can_be_taken_back(store: SqliteStore) -> None:
    """What narrows the search stands above the rows, each with a link that leaves it out; the form holds it too."""
    settle(store, ["a"], route="gone")
    body = (await get(store, "/samples?route=gone&since=1h&judge=&stage=")).text
    assert keys_on(body) == [a_draw("a").key]
    assert 'href="?since=1h"' in body
    assert 'href="?route=gone"' in body
    assert "1h ago" in Reading(body).text
    assert '<option value="gone" selected>' in body


async def test_metadata_and_documents_narrow_the_search(store: SqliteStore) -> None:
    """The form has a field for each key that narrows the search and one for another; links keep them apart."""
    settle(
        store, ["a", "b"], metadata={"release": "v2", "tier": "free"}, contexts=[Context("x", "doc-1"), Context("y")]
    )
    settle(store, ["c"], metadata={"release": "v2"})
    body = (await get(store, "/samples?metadata.release=v2&metadata=tier=free&context=doc-1&top_context=doc-1")).text
    assert keys_on(body) == [a_draw("a").key, a_draw("b").key]
    assert 'href="?metadata.release=v2&amp;context=doc-1&amp;top_context=doc-1"' in body
    assert '<input name="metadata.tier" value="free"' in body
    assert '<input name="metadata" value=""' in body
    assert "samples.csv?metadata.release=v2&amp;metadata.tier=free&amp;context=doc-1" in body
    page = await get(store, "/samples?metadata=release=v2&limit=2")
    older = link(page.text)
    assert older is not None
    assert keys_on((await get(store, f"/samples{older}")).text) == [a_draw("b").key]
    for name in ("samples.csv", "samples.jsonl", "api/v1/samples"):
        text = (await get(store, f"/{name}?metadata=tier=free&metadata.release=v2")).text
        assert [a_draw(one).key in text for one in "abc"] == [True, True, False]


@pytest.mark.parametrize("field", ["context", "top_context", "metadata.key", "text"])
async def test_t62_hostile_searches_are_shown_as_text(store: SqliteStore, field: str) -> None:
    """T62: whatever stands in a field of the search comes back as it is, executes nothing, and is no error."""
    settle(store, ["a"])
    elements = Reading((await get(store, f"/samples?{field}=plain")).text).tags
    for text in (*STRUCTURED, *SEARCHES, XSS):
        answer = await get(store, f"/samples?{urlencode({field: text}, errors='replace')}")
        read = Reading(answer.text)
        if field == "text" and answer.status_code == 400:  # nothing that is a word, or too many words
            assert "Invalid search\ntext: not 1 to 16 words" in read.text
        else:
            assert (answer.status_code, keys_on(answer.text), read.tags) == (200, [], elements)
        assert not [name for name, _ in read.attributes if name.startswith("on")]
        sent = text.encode("utf-8", "replace").decode().strip() if field == "metadata.key" else text
        assert sent[:10].replace("\ud800", "?") in "".join(value for name, value in read.attributes if name == "value")


async def test_words_narrow_the_search(store: SqliteStore, tmp_path: Path) -> None:
    """On the page, in its downloads and as JSON; a store that has no words says why, as an error of the search."""
    settle(store, ["a"], question="What is the refund policy?")
    settle(store, ["b"], question="A policy of refund?")
    body = (await get(store, "/samples?text=%22refund+policy%22")).text
    assert keys_on(body) == [a_draw("a").key]
    assert 'name="text" value="&#34;refund policy&#34;"' in body
    with closing(SqliteStore(tmp_path / "off", text_search=False)) as off:
        for path in ("samples", "samples.csv", "samples.jsonl", "api/v1/samples", "api/v1/samples?texts=true"):
            query = f"{'&' if '?' in path else '?'}text=refund"
            assert [a_draw(one).key in (await get(store, f"/{path}{query}")).text for one in "ab"] == [True, True]
            refused = await get(off, f"/{path}{query}")
            assert (refused.status_code, "store.text_search" in refused.text) == (400, True)


async def test_a_search_of_the_newest_matches_only_says_so(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another filter not all answers with the words are looked at: the page says since when, and leads on."""
    monkeypatch.setattr(sqlite_search, "MAX_EXAMINED", 2)
    names = ("a", "b", "c")
    settle(store, names, [0, 10, 20])
    new, middle, old = (a_draw(name).key for name in names)
    sentence = "Not all answers with these words were searched"
    for complete in ("text=cats", "route=search", "text=cats&route=search&since=2023-11-14T22:13:05"):
        assert sentence not in (await get(store, f"/samples?{complete}")).text
        assert "examined_since" not in (await get(store, f"/api/v1/samples?{complete}")).json()
    body = (await get(store, "/samples?text=cats&route=search")).text
    assert keys_on(body) == [new, middle]
    assert (
        f"{sentence}: with other filters, only the newest 20,000 of them are, here those since 2023-11-14 22:13:10"
        in (Reading(body).text)
    )
    match = re.search(r'<a href="(\?[^"]*)">Search the older ones', body)
    assert match is not None
    assert keys_on((await get(store, f"/samples{unescape(match[1])}")).text) == [middle, old]
    for texts in ("", "&texts=true"):
        listed = (await get(store, f"/api/v1/samples?text=cats&route=search{texts}")).json()
        assert (len(listed["samples"]), listed["examined_since"]) == (2, AT - 10)


@pytest.mark.parametrize("limit", [1, 3, 50])
async def test_pages_neither_skip_nor_repeat(store: SqliteStore, limit: int) -> None:
    """Following the links to older answers shows each verdict once, also where many are of one instant."""
    ages = [0, 0, 0, 0.25, 1, 1, 2, 3, 3, 3, 3, 4.5]
    settle(store, [f"r{number}" for number in range(len(ages))], ages)
    seen: list[str] = []
    query: str | None = f"?limit={limit}&since=1h&route=search"
    for _ in ages:
        if query is None:
            break
        body = (await get(store, f"/samples{query}")).text
        seen += keys_on(body)
        query = link(body)
    assert query is None
    assert sorted(seen) == sorted(a_draw(f"r{number}").key for number in range(len(ages)))


async def test_older_pages_keep_the_search_and_lead_back(store: SqliteStore) -> None:
    """`since` stays the same instant however late the next page is asked for, and there is a way to the newest."""
    settle(store, ["a", "b", "c"])
    first = (await get(store, "/samples?limit=2&since=1h")).text
    older = link(first)
    assert older is not None
    assert {"limit=2", f"since={AT - 3600}", f"until={AT - 1}"} == set(older[1:].split("&"))
    second = (await get(store, f"/samples{older}")).text
    assert keys_on(second) == [a_draw("c").key]
    assert link(second, ' rel="first"') == f"?limit=2&since={AT - 3600}"
    assert "these are the oldest" in second


@pytest.mark.costly
async def test_an_instant_with_more_than_a_page_can_hold_says_so(store: SqliteStore) -> None:
    """What cannot be shown is told, and what is older can be reached."""
    settle(store, [f"r{number}" for number in range(501)], [5.0] * 501)
    settle(store, ["older"], [60.0])
    body = (await get(store, "/samples?limit=25")).text
    assert len(keys_on(body)) == 500
    assert "more verdicts have this timestamp than a page holds" in body
    assert keys_on((await get(store, f"/samples{link(body)}")).text) == [a_draw("older").key]


@pytest.mark.parametrize(
    ("query", "named"),
    [("below=0.5", "below"), ("limit=1000", "limit"), ("quantity=beauty", "quantity"), (f"stage={XSS}", "stage")],
)
async def test_bad_parameters_are_named_on_the_page(store: SqliteStore, query: str, named: str) -> None:
    """Status 400, the parameter's name, no rows that were not asked for, and the form to mend it."""
    settle(store, ["a"])
    answer = await get(store, f"/samples?{query}")
    read = Reading(answer.text)
    assert (answer.status_code, keys_on(answer.text)) == (400, [])
    assert f"Invalid search\n{named}: " in read.text
    assert "script" not in read.tags
    assert '<form method="get"' in answer.text


async def test_empty_is_honest(store: SqliteStore) -> None:
    """Nothing kept, and nothing that fits, are told apart."""
    assert "No answer was judged yet" in (await get(store, "/samples")).text
    assert "No answer was judged yet" in (await get(None, "/samples")).text
    settle(store, ["a"])
    assert "No stored verdict matches this search" in (await get(store, "/samples?route=support")).text
