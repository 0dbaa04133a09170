"""What a person does in a real browser: from an alert's link to the failing claim, label it, search, export.

Every page keeps to its Content-Security-Policy, asks no other host, and has no serious violation of axe-core.
"""

import importlib.util
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from support.chromium import DESK, PHONE, Browser, chromium
from support.oncall_cases import PLAN, filled

from ragwatch.rules import alerts

ANSWERS, FAILING = 60, 20
PAGES = (
    *("/", "/trends", "/samples", "/label", "/label?annotator=reader", "/canaries", "/drift", "/causes"),
    *("/segments/release?window=1h", "/segments/step?window=1h", "/routes?route=search"),
    *("/changes?at=1h&route=search", "/acknowledge?judge=embedded"),
)
XSS = "<script>alert(1)</script><img src=x onerror=alert(1)><style>body{display:none}</style>"
NEITHER = "document.querySelector('mark.not_in_context, mark.contradicted')"


def rows() -> list[str]:
    """Lines of a log of two releases, of which the second one invents."""
    lines, start = [], time.time() - 15 * ANSWERS
    for number in range(ANSWERS):
        new = number >= ANSWERS - FAILING
        answer = {"answer": "It was sold to a baker in Paris."} if new else {}
        metadata = {"trace_id": f"{number:032x}", "release": f"v{1 + new}"}
        lines.append(record(number, at=start + number, metadata=metadata, **answer) + "\n")
    return lines


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagwatchProcess]:
    """A ragwatch that has judged all answers, of which the last ones have raised an alarm of drift."""
    folder = tmp_path_factory.mktemp("browser")
    drift = "{reference: 30, reference_time: 1s, quantities: [faithfulness], traffic: {signals: []}}"
    config = write_config(folder, thresholds="{faithfulness: 0.85}", drift=drift, segments="{release: [v1, v2]}")
    log, lines = folder / "log" / "app.jsonl", rows()
    log.write_text("".join(lines[:-FAILING]))
    with RagwatchProcess(config) as process:
        process.wait_until_serving()
        # The second release comes after the reference: none is learnt on a route whose mean is below its threshold.
        process.wait_for('ragwatch_drift_alarm{quantity="faithfulness",route="search"}', 0.0)
        with log.open("a") as appended:
            appended.write("".join(lines[-FAILING:]))
        process.wait_for('ragwatch_samples_judged_total{judge="embedded",route="search"}', ANSWERS)
        process.wait_for('ragwatch_drift_alarm{quantity="faithfulness",route="search"}', 1.0)
        yield process


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    """A browser without a window."""
    path = chromium()
    if path is None:
        pytest.skip("no browser: Debian package `chromium`")
    with Browser(path) as made:
        yield made


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    """The browser on a desk, with scripts, which has nothing to complain of at the end."""
    started.open("about:blank")
    started.size(DESK)
    started.scripts(on=True)
    started.requests.clear()
    yield started
    assert started.complaints == []


def labels(daemon: RagwatchProcess) -> list[dict[str, object]]:
    """All labels that count."""
    stored = json.loads(daemon.get("/api/v1/labels")[1])["labels"]
    return [label for label in stored if label.get("revoked") is None]


def progress(browser: Browser) -> tuple[int, int]:
    """Answers that are labelled, and those that are to be."""
    shown = re.search(r"(\d+) of (\d+) labelled", browser.text)
    assert shown is not None, browser.text
    return int(shown[1]), int(shown[2])


def choose(browser: Browser, *keys: str) -> None:
    """Answer the questions of the page by keys, then save and go on."""
    for key in keys:
        browser.press(key)
    browser.press("Enter", loads=True)


def link_of_alert(pages: str) -> str:
    """The link to the causes in the alert of a bad mean, as the rules write it and Prometheus fills it in."""
    (alert,) = (alert for alert in alerts(PLAN) if alert.name == "RagwatchQualityBad")
    rule: Any = alert.rule(PLAN)
    labels = {"route": "search", "judge": "embedded", "quantity": "faithfulness"}
    return filled(rule["annotations"]["causes_url"], labels, pages=pages)


def test_from_an_alert_to_the_claim_and_to_its_label(daemon: RagwatchProcess, browser: Browser) -> None:
    """The link of an alert names the release; one click leads to a failing answer with its claim marked.

    There the answer is labelled by keys alone, and the count rises; undo takes it back; other answers follow. The alarm
    of drift on the overview is acknowledged by two clicks.
    """
    browser.open(link_of_alert(daemon.address))
    assert "below=0.9" in browser.address
    assert "release v2" in browser.text
    browser.click('article.cause a[href^="samples/"]')
    assert browser.ask(f"{NEITHER}.textContent") == "It was sold to a baker in Paris."
    browser.click('a[href^="../label?key="]')
    browser.type('input[name="annotator"]', "ann")
    browser.click("form.begin button")
    before = len(labels(daemon))
    browser.wait("document.querySelector('mark.current') !== null")
    browser.press("n")
    browser.wait("document.getElementById('said').textContent.includes('not in the contexts')")
    choose(browser, "2", "n")
    assert "1 of 1 labelled" in browser.text
    (label,) = [one for one in labels(daemon) if one["annotator"] == "ann"]
    assert (len(labels(daemon)), label["claims"], label["scores"]) == (
        before + 1,
        ["not_in_context"],
        {"faithfulness": 0.0, "contradiction": 0.0, "answer_relevancy": 0.5, "top_ranked_ignored": 1.0},
    )
    browser.press("Tab")
    browser.click("#undo button")
    assert ("Nothing labelled" in browser.text, len(labels(daemon))) == (True, before)
    choose(browser, "c", "f", "y")
    assert len(labels(daemon)) == before + 1
    browser.type('input[name="count"]', "3")
    browser.click("form.begin button")
    done, total = progress(browser)
    assert (done, total in (3, 4)) == (1, True)  # the answer of before may be one of those that are given out
    choose(browser, "s", "f", "y")
    assert progress(browser) == (2, total)
    browser.press("u", loads=True)
    assert progress(browser) == (1, total)
    browser.press("?")
    assert browser.ask("document.getElementById('help').open")
    browser.press("Enter")
    assert "Press Enter again" in browser.text
    browser.open(f"{daemon.address}/")
    browser.click('a[href^="acknowledge?"]')
    assert "Acknowledge the drift alarm?" in browser.text
    browser.click("button.main")
    assert "faithfulness on search" in browser.text
    daemon.wait_for('ragwatch_drift_alarm{quantity="faithfulness",route="search"}', 0.0)
    browser.open(f"{daemon.address}/")
    assert browser.ask("document.querySelector('a[href^=\"acknowledge?\"]')") is None
    assert browser.foreign(daemon.address) == []


def test_labelling_works_without_scripts(daemon: RagwatchProcess, browser: Browser) -> None:
    """The page is a plain form: radio buttons, save, undo."""
    browser.scripts(on=False)
    browser.open(f"{daemon.address}/label")
    browser.type('input[name="annotator"]', "plain")
    browser.type('input[name="count"]', "2")
    browser.click("form.begin button")
    browser.click('input[name="c1"][value="s"]', loads=False)
    browser.click("#label button[type=submit]")
    assert "1 of 2 labelled" in browser.text
    browser.click("#undo button")
    assert "0 of 2 labelled" in browser.text


def test_search_sort_and_export(daemon: RagwatchProcess, browser: Browser) -> None:
    """A column's head sorts the worst first; the search leaves as CSV with as many rows."""
    browser.open(f"{daemon.address}/samples")
    browser.click('.answers thead a[href*="faithfulness"]')
    assert "sort=worst" in browser.address
    assert browser.ask("document.querySelector('.answers tbody .score').textContent.trim()") == "0.00"
    link = browser.ask("document.querySelector('a[href^=\"samples.csv\"]').href")
    status, body = daemon.get(link.removeprefix(daemon.address))
    assert (status, len(body.splitlines())) == (200, ANSWERS + 1)
    assert browser.foreign(daemon.address) == []


def test_a_phone_shows_the_figures_without_scrolling_sideways(daemon: RagwatchProcess, browser: Browser) -> None:
    """At 390 px no page is wider than the screen, and value, interval, threshold and n are within it."""
    browser.size(PHONE)
    for path in PAGES:
        browser.open(daemon.address + path)
        assert browser.ask("document.documentElement.scrollWidth") <= PHONE[0], path
    for path, names in (
        ("/", {"level", "judge's mean", "interval", "threshold", "n"}),
        ("/routes?route=search", {"mean", "interval", "n"}),
    ):
        browser.open(daemon.address + path)
        cells = browser.ask(
            "[...document.querySelectorAll('.figures tbody tr:not(.silent) .num')].map(one => {"
            " const box = one.getBoundingClientRect(); return [one.dataset.name, box.left, box.right]; })"
        )
        assert {cell[0] for cell in cells} >= names, path
        assert [cell for cell in cells if cell[1] < 0 or cell[2] > PHONE[0]] == [], path


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, tmp_path: Path) -> None:
    """On a desk or on a phone, with markup in every field: each page has its text, and the browser no complaint."""
    config = write_config(tmp_path)
    invented = record(1, question=XSS, answer=f"The old mill is {XSS} nine hundred metres high.", metadata={XSS: XSS})
    contexts = [{"id": XSS, "text": f"The old mill stands by the river. {XSS}", "score": 0.5}]
    (tmp_path / "log" / "app.jsonl").write_text(f"{record(0)}\n{invented}\n{record(2, contexts=contexts)}\n")
    with RagwatchProcess(config).wait_until_serving() as daemon:
        daemon.wait_for('ragwatch_samples_judged_total{judge="embedded",route="search"}', 3.0)
        found = json.loads(daemon.get("/api/v1/samples")[1])["samples"]
        keys = {each["sample"]["id"]: each["verdict"]["key"] for each in found}
        fields = dict.fromkeys(("text", "context", "top_context", f"metadata.{XSS}"), XSS)
        paths = [*PAGES, *(f"/samples/{key}" for key in keys.values()), f"/label?annotator=ann&key={keys['request-1']}"]
        paths += ["/samples?stage=generation", "/samples?colour=red", "/trends?range=90d", "/samples?text=-"]
        for number, path in enumerate([*paths, f"/samples?{urlencode(fields)}"]):
            browser.size((DESK, PHONE)[number % 2])
            browser.open(daemon.address + path)
            assert browser.complaints == [], path
            assert len(browser.text) > 50, path
        browser.open(f"{daemon.address}/samples/{keys['request-1']}")
        assert XSS in browser.text
        browser.ask("document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\">what is forbidden')")
        browser.wait("document.body.innerText.includes('what is forbidden')")
        assert browser.complaints  # so that it would have complained before
        browser.complaints.clear()


def axe() -> str:
    """The script of axe-core, which its package for Playwright holds."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or not package.submodule_search_locations:
        pytest.skip("no axe-core: package `axe-playwright-python`, installed by `make setup`")
    return (Path(package.submodule_search_locations[0]) / "axe.min.js").read_text()


LIGHT_DESK, DARK_PHONE = (DESK, False), (PHONE, True)


def violations(browser: Browser, script: str) -> list[object]:
    """Serious violations on a page, with the elements."""
    browser.ask(f"(() => {{ {script}; return true; }})()")
    serious = browser.ask(
        "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => [one.id, one.nodes.map(node => [node.html, node.failureSummary]).slice(0, 2)]))"
    )
    return list(serious)


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([LIGHT_DESK, DARK_PHONE], id="by turns", marks=pytest.mark.costly),
        pytest.param([LIGHT_DESK, (DESK, True), (PHONE, False), DARK_PHONE], id="each", marks=pytest.mark.slow),
    ],
)
def test_no_page_has_a_serious_violation_of_axe(
    daemon: RagwatchProcess, browser: Browser, looks: list[tuple[tuple[int, int], bool]], request: pytest.FixtureRequest
) -> None:
    """Names of fields, contrast, headings, landmarks, keyboard: in light and dark, on a desk and on a phone."""
    script = axe()
    key = json.loads(daemon.get("/api/v1/samples?limit=1")[1])["samples"][0]["verdict"]["key"]
    by_turns = request.node.get_closest_marker("costly") is not None
    of_one = (f"/samples/{key}", f"/samples/{key}/prompt?judge=embedded", f"/label?annotator=reader&key={key}")
    for number, path in enumerate((*PAGES, *of_one)):
        for window, dark in looks[number % 2 :: 2] if by_turns else looks:
            browser.size(window, dark=dark)
            browser.open(daemon.address + path)
            assert violations(browser, script) == [], f"{path} {window}{' dark' if dark else ''}"
