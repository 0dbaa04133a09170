"""`ragwatch causes`: what failing answers have in common, from a state directory."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from support.command_line import command, configured, refused
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence

from ragwatch.offline.causes import _show
from ragwatch.stores.sqlite.store import SqliteStore

EVER = ("--since", "2023-01-01")


SECTIONS = {"routes": ["search"], "judges": [{"name": JUDGE, "kind": "lexical"}]}
causes = partial(command, "causes", "--config")


@pytest.fixture
def store(store: SqliteStore) -> SqliteStore:
    """The store of a running daemon: since release v2, answers to one question of two fail."""
    verdicts = []
    for number in range(200):
        metadata = {"release": f"v{1 + (number >= 100)}"}
        draw = a_draw(f"r{number}", at=AT + number, question=f"Where is [item] {number % 7}?", metadata=metadata)
        bad = number % (2 if number >= 100 else 20) == 0
        verdicts.append(a_verdict(draw, an_evidence((0, 0)) if bad else None))
    store.admit(an_admission(*(verdict.draw for verdict in verdicts)))
    store.settle(verdicts)
    return store


@pytest.mark.usefixtures("store")
def test_causes_of_a_state(tmp_path: Path) -> None:
    """The daemon may be running; the release is named in words and as JSON; by a quantity, too.

    No answer of the time ends with exit code 3; answers without anything in common are told from it.
    """
    config = configured(tmp_path, **SECTIONS)
    said = causes(config, *EVER)
    assert said.return_value == 0
    assert "55 of 200 answers fail (27.5 %; any stage at fault, judge embedded)" in said.output
    assert "release v2 is in 91 % of failing answers and 34 % of the others; since" in said.output
    times = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
    assert (len(times.findall(said.output)), ":" in times.sub("", said.output).partition("release")[0]) == (2, False)
    line = json.loads(causes(config, *EVER, "--json", "--quantity", "faithfulness", "--route", "search").output)
    (cause,) = line["causes"]
    assert (cause["attribute"], cause["value"], cause["failing"], cause["n"]) == ("metadata.release", "v2", 0.5, 100)
    assert line["quantity"] == "faithfulness"
    said = causes(config, "--window", "1h")
    assert (said.return_value, "no judged answer of this time is stored" in said.output) == (3, True)
    said = causes(config, "--since", "2023-01-01", "--until", f"{AT + 90}")
    assert (said.return_value, "no slice of them fails more than the rest" in said.output) == (0, True)
    said = causes(configured(tmp_path, **SECTIONS, store={"kind": "sqlite", "texts": "none"}), *EVER)
    assert "store.texts is none: words of questions are not looked at" in said.output


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    """Routes, quantities and times: the message names the option."""
    config = configured(tmp_path, **SECTIONS)
    for arguments, said in (
        (("--route", "nowhere"), "--route nowhere: is not configured"),
        (("--quantity", "charm"), "--quantity: 'charm' is not known; use one of"),
        (("--window", "soon"), "--window: not a duration"),
        (("--judge", "nope"), f"--judge nope: is not configured; use one of: {JUDGE}"),
        (("--quantity", "faithfulness", "--below", "5"), "--below 5: is no score; write a number from 0 to 1"),
        (("--quantity", "contradiction", "--above", "-1"), "--above -1: is no score"),
        (("--since", "1d", "--until", "2d"), "--until 2d: is not later than the start of --since 1d"),
        (("--until", "30d"), "--until 30d: is not later than the start of --window 24h"),
    ):
        result = causes(config, *arguments)
        assert said in refused(result)


def test_what_is_folded_or_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Slices that a cause explains, answers without traits, and that there are more than can be read."""
    cause = {"attribute": "context", "text": "[b]doc-42 is in", "failing": 0.9, "low": 0.8, "high": 1.0, "others": 0.1}
    cause |= {"n": 9, "examples": ["k1"], "folded": [{"attribute": "term", "value": "refund"}]}
    view = {"answers": 30, "failing": 9, "share": 0.3, "quantity": None, "judge": "embedded", "looked_at": 12}
    view |= {"since": 1767225600.0, "causes": [cause], "texts": "all", "without_traits": 3, "complete": False}
    _show(view, "http://rag:80")
    said = capsys.readouterr().out
    assert "context: [b]doc-42 is in" in said
    assert "    http://rag:80/samples/k1\n" in said
    assert "explains too: term refund" in said
    assert "left out: 3 answers of which nothing but scores is stored" in said
    assert "these are the newest" in said
