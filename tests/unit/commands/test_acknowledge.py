"""`ragwatch acknowledge`: sends a request to a running ragwatch and prints its reply or why there is none."""

from __future__ import annotations

from functools import partial

import pytest
from support.answering import Asked, Reply, answering
from support.command_line import command, refused

from ragwatch.errors import ExternalError

run = partial(command, "acknowledge")


def reply(asked: Asked) -> Reply:
    """A ragwatch that knows all routes but one."""
    if asked.query.get("route") == "gone":
        return 400, {"error": "route: 'gone' is not known"}, {}
    return 200, b"faithfulness/search: acknowledged\n", {}


@pytest.mark.parametrize(
    ("arguments", "requests"),
    [
        ([], {}),
        (["--quantity", "faithfulness", "--route", "a b&c"], {"quantity": "faithfulness", "route": "a b&c"}),
        (["--renew"], {"renew": "true"}),
        (["--judge", "claude"], {"judge": "claude"}),
    ],
)
def test_asks_for_what_was_said(arguments: list[str], requests: dict[str, str]) -> None:
    """Special characters in names arrive unchanged."""
    with answering(reply) as (url, asked):
        result = run("--url", f"{url}/", *arguments)
    assert (result.exception, result.stdout) == (None, "faithfulness/search: acknowledged\n")
    assert [(one.path, one.query) for one in asked] == [("/-/drift/acknowledge", requests)]


def test_refusals_and_silence_are_reported() -> None:
    """As a usage error with the reason in the response, without the JSON around it; a closed port is no success."""
    with answering(reply) as (url, _):
        message = refused(run("--url", url, "--route", "gone"))
    assert message == f"{url} refused: route: 'gone' is not known"
    assert "no response" in refused(run("--url", url), ExternalError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--url", "file:///etc/passwd"], "is not a URL"),
        (["--judge", "claude", "--route", "search"], "anchors have no quantity and no route"),
        (["--route", "caf\udce9"], "is not UTF-8"),
    ],
)
def test_what_makes_no_sense_is_not_sent(arguments: list[str], message: str) -> None:
    """As a usage error."""
    result = run(*arguments)
    assert message in refused(result)
