"""An incident as Markdown: what it says is what the pages say; texts of others are no markup; unknown is a word."""

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support.asked import XSS, EmptyStore, get, judged, settled
from support.hostile import STRUCTURED
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, an_evidence
from support.snapshots import small

from ragwatch.ports import RecordedEvent, Store, StoredRun
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.incident import Incident, IncidentRequest
from ragwatch.web.scope import PageScope

CELL = ("faithfulness", "search")
SNAPSHOT = replace(
    small(),
    at=AT,
    judges={JUDGE: ("scripted", a_reading().version)},
    gauges={
        (Gauge.DRIFT_ALARM, CELL): 1.0,
        (Gauge.DRIFT_BEGAN, CELL): AT - 1500,
        (Gauge.SEGMENT_DRIFT_ALARM, (*CELL, "tenant", "acme")): 1.0,
        (Gauge.JUDGE_DRIFT_ALARM, (JUDGE,)): 1.0,
    },
)
SCOPE = PageScope(
    routes=("search", "faq"), judges=(JUDGE,), windows=("1h",), thresholds={"faithfulness": 0.8}, fingerprint="c0ffee"
)
BREAKING = (
    "```\n# owned\n| a | b |\n[click](http://evil) <img src=x onerror=alert(1)> @everyone #1",
    "~~~\n````````\n</details><script>alert(1)</script>",
    "a|b||c\\|d\\\\|e",
    "`` ` ``` @team http://evil.example www.evil.example x@evil.example",
    "\u202e\u0000\x1b[2J\r\n---\n- [ ] todo\n> quoted\n    indented",
)
NEW = [number > 60 and number % 3 > 0 for number in range(116)]
"""Which answers are of the second release, which fails."""
SPACES = {"\u3000", "\u00a0", "\u2003"}
LINES = MarkdownIt("gfm-like", {"html": True, "linkify": False})


def fill(store: Store, **parts: Any) -> None:
    """Good answers of the hour before the last, and of the last hour bad ones beside them."""
    draws = [
        a_draw(f"r{number}", at=AT - 7000 + 60 * number, **{"metadata": {"release": f"v{1 + new}"}, **parts})
        for number, new in enumerate(NEW)
    ]
    settled(store, draws, [an_evidence((0, 0)) if new else None for new in NEW])
    store.record(RecordedEvent(AT - 3700, "release", parts.get("answer", "v2")))
    body = {"evidence": 121.5, "threshold": 120.0, "judge": JUDGE, "seq": 1}
    store.record_run(StoredRun("drift", "faithfulness/search", AT - 1000, failing=True, body=body), Counter())


def written(store: Store, since: float = AT - 3600, route: str | None = None, **parts: Any) -> str:
    """The file."""
    given = {"snapshot": SNAPSHOT, "scope": SCOPE, "now": AT, "address": "http://rag.example", **parts}
    return Incident(IncidentRequest(since, AT, route), store, **given).text()


def test_it_says_what_the_pages_say(store: SqliteStore) -> None:
    """Figures with change and n, the alarm with its begin, the cause, the worst answers, events, links, versions."""
    fill(store)
    text = written(store)
    titles = re.findall(r"(?m)^#+ (.*)$", text)
    assert titles[1:] == [
        *("Figures", "Route `search`", "Route `faq`", "Alarms", "Cause", "Worst answers", "Canaries", "Events"),
        "Pages",
    ]
    assert re.search(r"\| faithfulness \| 1\.000 \| 0\.\d+ \| -0\.\d+ \(.*\) \| \d+ \| \d+ \| worse \|", text)
    assert "configuration `c0ffee`" in text
    assert f"`{JUDGE}` version `{a_reading().version}`" in text
    began, raised = (f"{datetime.fromtimestamp(AT - ago, UTC):%Y-%m-%d %H:%M}" for ago in (1500, 1000))
    assert f"| answers | faithfulness | `search` | {began} | {raised} | still active | unknown |" in text
    assert "| segment | faithfulness of `tenant` `acme` |" in text
    assert "- `metadata.release` `v2`: fails in 100%" in text
    assert text.count("/samples/") == 5
    assert "| release | `v2` |" in text
    assert "http://rag.example/changes?route=search&at=" in text
    assert "| unknown | unknown |" in text  # route faq


def test_unknown_is_said_in_words() -> None:
    """Nothing is stored, no digest has run: no figure is invented, and nothing is called good."""
    text = written(EmptyStore(), snapshot=Snapshot(at=AT), scope=PageScope())
    for words in (
        "Unknown: no answer of either time is judged.",
        "No drift alarm stood in this time.",
        "Unknown: no answer of this time is judged.",
        "No answer of this time is judged.",
        "No canary suite is configured.",
        "configuration unknown; judges: unknown",
    ):
        assert words in text
    assert "None" not in text
    assert "nan" not in text


def test_one_route_alone(store: SqliteStore) -> None:
    """No figure, answer or alarm of another."""
    fill(store)
    text = written(store, route="faq")
    assert "Route `search`" not in text
    assert "No drift alarm" not in text  # that of the judge concerns every route
    assert "| answers |" not in text
    assert "/samples/" not in text


def test_hostile_texts_stay_text(store: SqliteStore) -> None:
    """In answers, questions, events, metadata and routes: headings, tables, links and markup are those of ragwatch."""
    fill(store)
    plain = written(store)
    ours = {one.type for token in LINES.parse(plain) for one in (token, *(token.children or ()))}
    for number, hostile in enumerate((*BREAKING, XSS, *STRUCTURED)):
        texts = {"question": hostile, "answer": hostile * 50, "metadata": {"release": hostile}}
        newest = AT - 50 + number  # which come first
        judged(store, a_draw(f"hostile{number}", at=newest, **texts), an_evidence(a_claim((0, 0))))
        store.record(RecordedEvent(newest, "release", hostile))
        text = written(store, scope=replace(SCOPE, routes=(*SCOPE.routes, hostile)))
        tokens = LINES.parse(text)
        inline = [child for token in tokens for child in token.children or ()]
        kinds = {token.type for token in (*tokens, *inline)}
        assert kinds <= ours - {"html_block", "html_inline", "image"}, hostile
        addresses = [str(token.attrGet("href")) for token in inline if token.type == "link_open"]
        assert all(address.startswith("http://rag.example/") for address in addresses), hostile
        words = "".join(token.content for token in inline if token.type == "text")
        assert not re.search(r"[@#`<|]", words), hostile
        assert widths(text) == widths(plain), hostile
        odd = {char for char in text if not char.isprintable()}
        assert odd <= {"\n", "\t", "\u200c", "\u200d", *SPACES}, hostile


def widths(text: str) -> set[int]:
    """Bars in the lines of tables, outside of code blocks."""
    fenced = {line for token in LINES.parse(text) if token.type == "fence" and token.map for line in range(*token.map)}
    lines = enumerate(text.splitlines())
    return {line.count("|") for number, line in lines if line.startswith("| ") and number not in fenced}


@pytest.mark.parametrize(
    ("parameters", "since", "until"),
    [
        ({"since": "1h"}, AT - 3600, AT),
        ({"since": "2h", "until": "1h", "route": "faq"}, AT - 7200, AT - 3600),
        ({"since": f"{datetime.fromtimestamp(AT - 3600, UTC):%H:%M}"}, (AT - 3600) // 60 * 60, AT),
        ({"since": f"{datetime.fromtimestamp(AT + 3600, UTC):%H:%M}"}, (AT + 3600) // 60 * 60 - 86400, AT),
    ],
)
def test_times(parameters: dict[str, str], since: float, until: float) -> None:
    """A time of the day is the last one that has passed, in UTC."""
    asked = IncidentRequest.of(parameters, SCOPE, AT)
    assert (asked.since, asked.until) == (since, until)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"since": "9w"}, {"since": "soon"}, {"since": "1h", "until": "2h"}, {"since": "1h", "route": "x"}, {"a": "b"}],
)
def test_what_cannot_be_asked(parameters: dict[str, str]) -> None:
    """The error names the parameter."""
    with pytest.raises(ParameterError, match=r"since|until|route|a:"):
        IncidentRequest.of(parameters, SCOPE, AT)


async def test_it_is_served_as_a_file(store: SqliteStore) -> None:
    """With a name of its own; the overview and the page of a route lead to it."""
    fill(store)
    reply = await get(store, "/incident.md?since=1h", scope=SCOPE, snapshot=SNAPSHOT)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/markdown; charset=utf-8")
    assert re.fullmatch(r'attachment; filename="incident-[\d-]+\.md"', reply.headers["content-disposition"])
    assert reply.text.startswith("# Incident on all routes")
    assert (await get(store, "/incident.md")).status_code == 400
    for path in ("/", "/routes?route=search"):
        assert 'href="incident.md?since=1h' in (await get(store, path, scope=SCOPE, snapshot=SNAPSHOT)).text
