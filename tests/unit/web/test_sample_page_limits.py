"""The sample page with too large or damaged data."""

from __future__ import annotations

import pytest
from support.asked import get, judged
from support.kit import AT, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence

from ragwatch.core.labels.label import Label
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.sample_page import LINE_BYTES, MAX_LABELS, TEXT_BYTES

PLACES = ("samples SET body", "verdicts SET line")


def settle(store: SqliteStore, **parts: str) -> str:
    """Keep a verdict of two judges; the answer's key."""
    draw = a_draw("a", **parts)
    store.admit(an_admission(draw, judges=("embedded", "second")))
    store.settle([a_verdict(draw), a_verdict(draw, reading=a_reading("second", "v2"))])
    return draw.key


async def test_texts_larger_than_a_page_reads_are_cut(store: SqliteStore) -> None:
    """The page stands, shows the beginning, and says that it is not all."""
    key = settle(store, answer="begin " + "x" * TEXT_BYTES)
    response = await get(store, f"/samples/{key}")
    assert response.status_code == 200
    assert "only their beginning is shown" in response.text
    assert "begin xxx" in response.text


async def test_a_verdict_larger_than_a_page_reads_is_cut(store: SqliteStore) -> None:
    """Claims as far as they were read; the page does not stumble over the one that is cut."""
    draw = a_draw("a")
    claims = [a_claim((1, 0), text=f"claim {number} " + "x" * (LINE_BYTES // 100)) for number in range(150)]
    judged(store, draw, an_evidence(*claims))
    response = await get(store, f"/samples/{draw.key}")
    assert response.status_code == 200
    assert "claim 90 " in response.text
    assert "claim 120 " not in response.text


@pytest.mark.parametrize("places", [PLACES[:1], PLACES[1:], PLACES])
async def test_damage_is_told_on_the_page(store: SqliteStore, places: tuple[str, ...]) -> None:
    """What can be read is shown, with one line on what cannot."""
    key = settle(store)
    for place in places:
        store.engine._writer.execute(f"UPDATE {place} = X'00ff'")
    response = await get(store, f"/samples/{key}")
    assert (response.status_code, response.text.count("a stored text is damaged")) == (200, 1)
    assert key in response.text


async def test_the_newest_labels_of_this_answer_are_shown(store: SqliteStore) -> None:
    """Labels of other answers, and the oldest of too many, are not."""
    key = settle(store)
    own = [Label(key, f"person {number:03}", AT + number, {}) for number in range(MAX_LABELS + 3)]
    store.add_labels([*own, Label("0" * 32, "somebody else", AT, {})])
    text = (await get(store, f"/samples/{key}")).text
    assert ("person 002" in text, "person 003" in text, "somebody else" in text) == (False, True, False)
