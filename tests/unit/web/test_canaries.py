"""The canary page: degraded canaries, changes, history, failures."""

import re
from collections import Counter
from typing import Any

import pytest
from support.asked import EmptyStore, get
from support.canaries import a_canary, a_failure, a_reply, a_report
from support.snapshots import AT

from ragwatch.ports import NoteStore, StoredRun
from ragwatch.statistics.canary.answer import GOLD, RETRIEVED, JudgedAnswer
from ragwatch.statistics.canary.definition import Canary, Category, Hit, Retrieved
from ragwatch.statistics.canary.history import body_of, tallies_of
from ragwatch.statistics.canary.report import CanaryReport, SuiteReport
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.pages.canaries import MAX_LISTED, canaries, suites_of
from ragwatch.web.pages.pages import page as rendered

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)> \" ' &"
REFUNDS, SHIPPING = a_canary("refunds#1", "refunds#2"), a_canary("shipping#1", name="shipping")


def keep(
    store: NoteStore,
    *reports: CanaryReport,
    at: float = AT,
    suite: str = "docs",
    answers: tuple[JudgedAnswer, ...] = (),
) -> None:
    """Keep a run as the loop of canaries does."""
    report = SuiteReport(suite, (1, 5), reports, answers)
    store.record_run(StoredRun("canary", suite, at, not report.success, body_of(report)), tallies_of(report))


def page(store: NoteStore, *suites: str) -> str:
    """The page an hour and two minutes after the first run."""
    return rendered("canaries.html", {"version": "1", **canaries(store, suites or ("docs",), now=AT + 3720)})


def test_what_vanished_and_what_came_instead(store: SqliteStore) -> None:
    """A degraded canary is held against its last good run; figures stand beside each other, recall beside MRR."""
    keep(store, a_report(REFUNDS, a_reply("refunds#1", "faq", "refunds#2")), a_report(SHIPPING, a_reply("shipping#1")))
    keep(store, a_report(REFUNDS, a_failure()), a_report(SHIPPING, a_reply("shipping#1")), at=AT + 60)
    lost = a_report(REFUNDS, a_reply("sale", "refunds#2", "faq"))
    keep(store, lost, a_report(SHIPPING, a_reply("shipping#1")), at=AT + 120)
    (suite,) = canaries(store, ("docs",), now=AT + 3720)["suites"]
    assert (suite["state"], suite["recall"], suite["mrr"], suite["age_seconds"]) == ("bad", 0.75, 0.75, 3600.0)
    assert [row["k"] for row in suite["by_k"]] == [1, 5]
    (bad,) = suite["degraded"]
    assert bad["change"]["vanished"] == [{"context": "refunds#1", "before": 1, "after": None, "instead": "sale"}]
    assert bad["change"]["moved"] == [{"context": "refunds#2", "before": 3, "after": 2, "instead": "faq"}]
    assert [hit["context"] for hit in bad["change"]["newcomers"]] == ["sale"]
    assert [run["state"] for run in suite["history"]] == ["good", "unsure", "bad"]
    shown = page(store)
    for text in ("Retrieval has degraded", "refunds#1</b>, was at rank 1; replaced by sale", "rank 3 → 2", "recall@5"):
        assert text in shown
    assert len(re.findall(r'<rect class="(?:good|bad|unsure)"', shown)) == 3


def test_wrong_answers_name_their_stage_beside_the_reference(store: SqliteStore) -> None:
    """Retrieval is fine, the answer is wrong with the expected contexts too: not good, and not a degraded retriever."""
    canary = a_canary("refunds#1", reference="Within five days.")
    answers = tuple(JudgedAnswer("refunds", origin, HOSTILE, {"correctness": 0.0}) for origin in (GOLD, RETRIEVED))
    keep(store, a_report(canary, a_reply("refunds#1")), answers=answers)
    view = canaries(store, ("docs",), now=AT)
    assert (view["state"], view["headline"], view["degraded"]) == ("bad", "Answers to canaries are wrong", 0)
    answered = {"reference": "Within five days.", "gold": HOSTILE, "retrieved": HOSTILE}
    asked = {"canary": "refunds", "query": "What about refunds?", "fault": "generator"}
    assert view["suites"][0]["wrong"] == [asked | answered]
    html = page(store)
    for text in (
        "even with the right contexts it is wrong: the generator (1 of 1 canaries)",
        "correctness 0.000 with the expected contexts, 0.000 with the retrieved ones",
        *("Within five days.", "1 is answered wrong"),
    ):
        assert text in html
    assert "<script>alert" not in html


def test_figures_by_category(store: SqliteStore) -> None:
    """A table where the suite has more than one category, with F1 and recall beside precision and MRR."""
    steps = a_canary("s1", "s2", name="steps", category=Category.PROCEDURAL)
    keep(store, a_report(SHIPPING, a_reply("shipping#1")), a_report(steps, a_reply("s1")))
    (suite,) = canaries(store, ("docs",), now=AT + 3720)["suites"]
    assert [(row["category"], row["recall"]["5"], row["degraded"]) for row in suite["categories"]] == [
        ("simple_factual", 1.0, 0),
        ("procedural", 0.5, 1),
    ]
    shown = page(store)
    for text in ("By category", "procedural", "F1", "0.286"):
        assert text in shown
    keep(store, a_report(SHIPPING, a_reply("shipping#1")), at=AT + 60)
    assert "By category" not in page(store)


@pytest.mark.parametrize(
    ("canary", "came", "texts", "absent"),
    [
        (SHIPPING, a_reply("shipping#1"), ("No canary is degraded",), "Degraded"),
        (REFUNDS, a_failure("redirect"), ("Some canary queries failed", "redirect", "no reply", "unknown"), "0.000"),
        (
            a_canary("weak", min_relevance_score=0.95),
            a_reply("weak"),
            ("below min score", "(minimum 0.95)"),
            "not retrieved in",
        ),
        (a_canary(category=Category.NEGATIVE), a_reply("something"), ("found for negative",), "not retrieved in"),
        (REFUNDS, a_reply("x", scores=[None]), ("not retrieved in the runs shown",), "below min score"),
        (SHIPPING, a_reply(), ("not retrieved in the runs shown",), "below min score"),
        (a_canary("t"), Retrieved((Hit("y" * 99),)), ("y" * 59,), "y" * 60),
    ],
)
def test_a_canary_says_how_it_is_and_why(
    store: SqliteStore, canary: Canary, came: Any, texts: tuple[str, ...], absent: str
) -> None:
    """Well, failed (which is unknown, not zero), or degraded for one of several reasons; a long text is cut."""
    keep(store, a_report(canary, came))
    shown = page(store)
    assert [text for text in texts if text not in shown] == []
    assert absent not in shown


@pytest.mark.costly
def test_a_large_suite_is_cut_and_says_so(store: SqliteStore) -> None:
    """The page lists the first, and links to the rest; the JSON has them all. Few of its runs are read."""
    many = [a_report(a_canary("a", name=f"c{number}"), a_reply("x")) for number in range(400)]
    for run in range(7):
        keep(store, *many, *[a_report(a_canary("a", name="down"), a_failure())] * (MAX_LISTED + 3), at=AT + run)
    shown = page(store)
    assert "and 350 more" in shown
    assert "and 3 more" in shown
    (suite,) = canaries(store, ("docs",), now=AT)["suites"]
    assert (len(suite["degraded"]), len(suite["history"])) == (400, 5)


def test_which_suites_are_shown(store: SqliteStore) -> None:
    """The configured ones, also those that never ran; without a configuration, those that ever ran.

    A run of another version, which cannot be read, is no run.
    """
    for body in ({"reports": 3}, {"ks": [5], "reports": []}):
        store.record_run(StoredRun("canary", "docs", AT, failing=True, body=body), Counter())
        assert "no run yet" in page(store)
    ran = Snapshot(at=AT, tallies=Counter(tallies_of(SuiteReport("old", (5,), ()))))
    assert suites_of(PageScope(suites=("docs",)), ran) == ("docs",)
    assert suites_of(PageScope(), ran) == ("old",)
    assert suites_of(PageScope(), None) == ()
    assert "No canary suite is configured" in rendered(
        "canaries.html", {"version": "1", **canaries(EmptyStore(), (), now=AT)}
    )
    keep(store, a_report(SHIPPING, a_reply("shipping#1")))
    never = ["no run yet" in shown for shown in (page(store), page(store, "docs", "new"), page(EmptyStore()))]
    assert never == [False, True, True]


async def test_the_endpoints(store: SqliteStore) -> None:
    """Page and JSON say the same."""
    keep(store, a_report(SHIPPING, a_reply("x")), a_report(REFUNDS, a_failure()))
    scope = PageScope(suites=("docs",))
    html, data = [await get(store, path, scope=scope) for path in ("/canaries", "/api/v1/canaries")]
    assert (html.status_code, data.status_code) == (200, 200)
    assert "1 of 2 canaries is degraded; 1 got no usable reply, so its state is unknown." in html.text
    assert data.json()["suites"][0]["degraded"][0]["canary"] == "shipping"
    assert (await get(None, "/canaries", scope=scope)).status_code == 200
