"""A reply is what was asked for, or an error that names the field at fault; never a guess, never a traceback."""

import json
from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.judges.llm.reply import PageIds, Reply, ReplyError, ReplyRow, parse
from ragwatch.judges.llm.rubric import PromptTurn, schema, system
from ragwatch.model.evidence import Address, ClaimVerdict
from ragwatch.model.quantity_row import Part

NAMES = PageIds(
    claims=("rwd.1", "rwd.2"),
    contexts={"kqv": ("kqv.1", "kqv.2"), "mzt": ("mzt.1",)},
    ranks={"kqv": 0, "mzt": 2},
    needs=(),
    reference=("hgp.1",),
)
EVERY = frozenset(Part) - {Part.CRITERIA}
FACTS = {"facts": ["a b"], "cells": [], "in_answer": "no"}
SHAPE = schema(PromptTurn.JOINT, EVERY)
STRANGE = "Zyzzyva!"
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(["rwd.1", "kqv", "supported", "yes"]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from([*map(str, Part), "id", "cells", "verdict"]), inner)
    ),
)


def a_reply() -> dict[str, Any]:
    """A valid reply."""
    cells = [{"context": "mzt", "quote": "five days"}]
    return {
        "claims": [
            {"id": "rwd.2", "verdict": "not_in_context", "cells": [], "in_reference": "no"},
            {"id": "rwd.1", "verdict": "supported", "cells": cells, "in_reference": "yes"},
        ],
        "contexts": [{"id": "mzt", "useful": ["mzt.1", "mzt.1"]}, {"id": "[kqv]", "useful": []}],
        "needs": [{"question": "how  long?", "answered": "yes"}],
        "address": "partially",
        "reference": [{"id": "hgp.1", "cells": [{"context": "kqv.2", "quote": "a b"}], "in_answer": "no"}],
    }


def test_a_valid_reply() -> None:
    """Entries may come in any order; ids may carry the brackets and line numbers of the page."""
    assert parse(json.dumps(a_reply()), SHAPE, NAMES) == Reply(
        claims=(
            (ReplyRow(ClaimVerdict.SUPPORTED, ((2, "five days"),), other=True),),
            (ReplyRow(ClaimVerdict.NOT_IN_CONTEXT, (), other=False),),
        ),
        useful=(0, 1),
        needs=("how long?",),
        answered=(True,),
        address=Address.PARTIALLY,
        reference=((ReplyRow(None, ((0, "a b"),), other=False),),),
    )


def test_wrapped() -> None:
    """Models without a schema wrap the object in a fence, a sentence or their thoughts."""
    for dress in ("{}", "```json\n{}\n```", "Here it is:\n{}\nDone.", "<think>{{a}} hm</think>\n{}", "\ufeff{}"):
        assert parse(dress.format(json.dumps(a_reply())), SHAPE, NAMES).address is Address.PARTIALLY, dress


def a_change(*path: Any, to: Any = ...) -> Callable[[dict[str, Any]], None]:
    """Set the value at a path; without one, delete it."""

    def change(reply: dict[str, Any]) -> None:
        place = reduce(getitem, path[:-1], reply)
        if to is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("field", "change"),
    [
        *((part, a_change(part)) for part in map(str, EVERY)),
        *((part, a_change(part, to=7)) for part in map(str, EVERY)),
        ("claims", a_change("claims", 0)),
        ("claims[0]", a_change("claims", 0, to="supported")),
        ("claims[0].id", a_change("claims", 0, "id")),
        ("claims[0].id", a_change("claims", 0, "id", to=1)),
        ("claims[0].id", a_change("claims", 0, "id", to="rwd.3")),
        ("claims[0].id", a_change("claims", 0, "id", to=STRANGE)),
        ("contexts[0].id", a_change("contexts", 0, "id", to=STRANGE)),
        ("claims[1].id", a_change("claims", 0, "id", to="rwd.1")),
        ("facts", a_change("facts", to="days")),
        ("facts[0]", a_change("facts", to=["days"])),
        ("reference_facts[0].facts", a_change("reference_facts", to=[{"id": "hgp.1", "cells": [], "in_answer": "no"}])),
        ("reference_facts[0].id", a_change("reference_facts", to=[FACTS | {"id": "rwd.1"}])),
        ("claims[0].verdict", a_change("claims", 0, "verdict")),
        ("claims[0].verdict", a_change("claims", 0, "verdict", to=STRANGE)),
        ("claims[0].verdict", a_change("claims", 0, "verdict", to=True)),
        ("claims[0].in_reference", a_change("claims", 0, "in_reference", to="maybe")),
        ("claims[1].cells", a_change("claims", 1, "cells", to=None)),
        ("claims[1].cells[0]", a_change("claims", 1, "cells", 0, to="kqv")),
        ("claims[1].cells[0].context", a_change("claims", 1, "cells", 0, "context", to="xxx")),
        ("claims[1].cells[0].quote", a_change("claims", 1, "cells", 0, "quote", to=["five"])),
        ("contexts", a_change("contexts", 1)),
        ("contexts[0].useful[0]", a_change("contexts", 0, "useful", to=["kqv.1"])),
        ("contexts[0].useful[1]", a_change("contexts", 0, "useful", to=["mzt.1", 2])),
        ("needs[0]", a_change("needs", 0, to="how?")),
        ("needs[0].question", a_change("needs", 0, "question", to=" ")),
        ("needs[0].answered", a_change("needs", 0, "answered", to="unknown")),
        ("address", a_change("address", to=STRANGE)),
        ("reference", a_change("reference", to=[])),
        ("reference[0].in_answer", a_change("reference", 0, "in_answer")),
    ],
)
def test_what_is_wrong_is_named(field: str, change: Callable[[dict[str, Any]], None]) -> None:
    """One thing wrong makes the whole reply invalid; the error says where, and never repeats it: it goes to logs."""
    reply = a_reply()
    change(reply)
    with pytest.raises(ReplyError) as caught:
        parse(json.dumps(reply), SHAPE, NAMES)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert STRANGE not in str(caught.value)


def test_no_object() -> None:
    """What is no JSON object (cut short, nested without end, too long, not finite) is an error like any other."""
    texts = ["", "null", "[]", "true", '"{}"', "no", "{", "}", "}{", '{"claims": NaN}', "{'claims': []}", "[" * 100_000]
    texts += ['{"a":' * 100_000 + "1" + "}" * 100_000, "{" + " " * 1_000_001 + "}", '{"a": "\ud800"}']
    for text in (*texts, json.dumps(a_reply())[:-9]):
        with pytest.raises(ReplyError) as caught:
            parse(text, SHAPE, NAMES)
        assert caught.value.field in {"", *map(str, Part)}


@given(JSON | st.text())
def test_anything_at_all(found: Any) -> None:
    """Whatever a model says, it is a reply or a `ReplyError`."""
    with pytest.raises(ReplyError):
        parse(found if isinstance(found, str) else json.dumps(found), SHAPE, NAMES)


def test_needs_are_few_and_different() -> None:
    """At most three sub-questions count; the same one twice is one, and none at all is legal."""
    reply = a_reply()
    reply["needs"] = [{"question": each, "answered": "no"} for each in ("a?", "a?", "b?", "c?", "d?")]
    assert parse(json.dumps(reply), SHAPE, NAMES).needs == ("a?", "b?", "c?")
    reply["needs"] = []
    assert parse(json.dumps(reply), SHAPE, NAMES).needs == ()


@pytest.mark.parametrize("turn", PromptTurn)
def test_the_schema_is_static_and_closed(turn: PromptTurn) -> None:
    """Strings, lists and enums only; every key is required and no other allowed; the same object each time.

    What the rubric shows as a pattern has the keys of the schema, for every set of parts that holds these.
    """
    whole = schema(turn, EVERY)
    assert schema(turn, EVERY) is whole
    stack = [whole]
    while stack:
        one = stack.pop()
        assert one["type"] in {"object", "array", "string"}
        if one["type"] == "object":
            assert one["additionalProperties"] is False
            assert one["required"] == list(one["properties"])
            stack += one["properties"].values()
        elif one["type"] == "array":
            assert set(one) == {"type", "items"}
            stack.append(one["items"])
    names = PageIds(("rwd.1",), {"kqv": ("kqv.1",)}, {"kqv": 0}, ("nds.1",), ("hgp.1",))
    for left_out in EVERY:
        parts = EVERY - {left_out}
        pattern = json.loads(system(turn, parts).rpartition("\n")[2])
        assert list(pattern) == schema(turn, parts)["required"]
        assert isinstance(parse(json.dumps(pattern), schema(turn, parts), names), Reply)
