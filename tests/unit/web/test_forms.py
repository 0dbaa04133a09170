"""Forms: only those that this process served to this browser are taken (X21)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from support.asked import application, asking
from support.snapshots import small

from ragwatch.statistics.snapshot import Gauge
from ragwatch.web import Access, RequestPolicy, Right

ORIGIN = {"Origin": "http://localhost"}
ALARM = {
    (Gauge.DRIFT_ALARM, ("faithfulness", "a&b")): 1.0,
    (Gauge.TRAFFIC_DRIFT_EVIDENCE, ("empty_retrieval", "search")): 9.0,
    (Gauge.TRAFFIC_DRIFT_ALARM, ("empty_retrieval", "search")): 1.0,
    (Gauge.JUDGE_DRIFT_ALARM, ("embedded",)): 1.0,
}


@asynccontextmanager
async def browser(
    done: list[Mapping[str, str]], access: Access | None = None, base: str = "http://localhost"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies; acknowledged alarms are put into `done`."""

    async def acknowledge(parameters: Mapping[str, str]) -> str:
        done.append(parameters)
        return "acknowledged"

    policy = RequestPolicy(access=lambda: access or Access())
    actions = {"/-/drift/acknowledge": acknowledge}
    async with asking(application(replace(small(), gauges=ALARM), actions=actions, policy=policy), base) as client:
        yield client


def forms(page: str) -> list[tuple[str, str]]:
    """Address and token of each form of a page."""
    return re.findall(r'method="post" action="([^"]+)"><input type="hidden" name="form_token" value="(\w+)">', page)


def links(page: str) -> list[str]:
    """Addresses of the pages that ask whether to acknowledge an alarm."""
    return [f"/{address.replace('&amp;', '&')}" for address in re.findall(r'href="(acknowledge[?][^"]+)"', page)]


@pytest.mark.parametrize("path", ["/", "/drift"])
async def test_x21_a_button_of_our_page_works(path: str) -> None:
    """Each alarm has a page that asks; its form, with token and SameSite cookie, is accepted and names the alarm."""
    done: list[Mapping[str, str]] = []
    async with browser(done) as client:
        page = await client.get(path)
        cookie = page.headers["set-cookie"]
        assert re.fullmatch(r"ragwatch_form=[\w-]{32}; Path=/; HttpOnly; SameSite=Strict", cookie)
        for link in links(page.text):
            asked = await client.get(link)
            assert "Acknowledge the drift alarm?" in asked.text
            ((address, token),) = forms(asked.text)
            url = "/" + address.replace("&amp;", "&")
            headers = ORIGIN | {"Accept": "text/html,*/*"}
            reply = await client.post(url, data={"form_token": token}, headers=headers)
            assert (reply.status_code, "<p>acknowledged</p>" in reply.text) == (200, True)
            assert 'href="../../drift"' in reply.text
        again = await client.get(path)
        assert "set-cookie" not in again.headers
    done.sort(key=str)
    assert done == [
        {"judge": "embedded"},
        {"quantity": "empty_retrieval", "route": "search"},
        {"quantity": "faithfulness", "route": "a&b"},
    ]


async def test_the_page_that_asks_names_the_alarm_and_what_happens() -> None:
    """It says what ends and what starts again, offers a new baseline where there is one, and refuses other alarms."""
    done: list[Mapping[str, str]] = []
    async with browser(done) as client:
        page = (await client.get("/acknowledge?quantity=faithfulness&route=a%26b")).text
        assert "<b>faithfulness</b> on <b>a&amp;b</b> has drifted" in page
        assert "raised again" in page
        (renew,) = re.findall(r'formaction="([^"]+)"', page)
        ((_, token),) = forms(page)
        url = "/" + renew.replace("&amp;", "&")
        assert (await client.post(url, data={"form_token": token}, headers=ORIGIN)).text == "acknowledged\n"
        assert "formaction" not in (await client.get("/acknowledge?judge=embedded")).text
        for query in (
            "",
            "?quantity=faithfulness",
            "?judge=nobody",
            "?quantity=faithfulness&route=a%26b&judge=embedded",
        ):
            other = await client.get(f"/acknowledge{query}")
            assert ("No such alarm is active" in other.text, forms(other.text)) == (True, [])
    assert done == [{"quantity": "faithfulness", "route": "a&b", "renew": "true"}]


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"])
@pytest.mark.parametrize("header", ["origin", "cookie", "referer"])
async def test_x21_forms_without_our_token_change_nothing(content_type: str, header: str) -> None:
    """A form of another page, a token of another browser, and a cookie of the attacker's choice are refused."""
    done: list[Mapping[str, str]] = []
    values = {"origin": "http://localhost", "cookie": f"ragwatch_form={'a' * 32}", "referer": "http://evil.example/"}
    async with browser(done) as client:
        ((_, token),) = forms((await client.get("/acknowledge?judge=embedded")).text)
        client.cookies.clear()
        for body in (b"", b"form_token=", f"form_token={token}".encode(), b"form_token=%ff", b"a" * 20_000):
            headers = {"Content-Type": content_type, header: values[header]}
            for path in ("/-/drift/acknowledge", "/label"):
                assert (await client.post(path, content=body, headers=headers)).status_code == 403
    assert done == []


async def test_x21_other_sites_are_refused_whatever_they_send() -> None:
    """A foreign origin, another scheme, another port, `null`, and a browser that says cross-site without an origin."""
    done: list[Mapping[str, str]] = []
    foreign = ["http://evil.example", "https://localhost", "http://localhost:8000", "null"]
    async with browser(done) as client:
        for headers in (*({"Origin": origin} for origin in foreign), {"Sec-Fetch-Site": "cross-site"}):
            assert (await client.post("/-/drift/acknowledge", headers=headers)).status_code == 403
        assert done == []
        assert (await client.post("/-/drift/acknowledge", headers={"Sec-Fetch-Site": "same-origin"})).is_success


async def test_programs_send_no_tokens() -> None:
    """Curl and `ragwatch acknowledge` send a form's content type without being a browser."""
    done: list[Mapping[str, str]] = []
    async with browser(done) as client:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await client.post("/-/drift/acknowledge?judge=a", headers=headers)).status_code == 200
    assert done == [{"judge": "a"}]


async def test_readers_get_no_buttons() -> None:
    """Without the right `write` there is no form, and no cookie."""
    async with browser([], Access(anonymous=frozenset({Right.PAGES}))) as client:
        for path in ("/", "/drift", "/acknowledge?judge=embedded"):
            page = await client.get(path)
            assert "set-cookie" not in page.headers
            assert (forms(page.text), links(page.text)) == ([], [])
        assert "needs the right <code>write</code>" in page.text


async def test_cookies_are_secure_over_tls() -> None:
    """Over TLS the cookie is never sent in the clear."""
    async with browser([], base="https://localhost") as client:
        assert (await client.get("/drift")).headers["set-cookie"].endswith("; Secure")
        assert "set-cookie" not in (await client.get("/api/v1/drift")).headers
