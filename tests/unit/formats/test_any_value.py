"""Any JSON value may stand anywhere in a record: it is read, or refused with a reason, and never stops its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from support.draws import EXAMPLES, USUAL
from support.logged import records

from ragwatch.errors import FormatError
from ragwatch.formats import FORMATS, build
from ragwatch.model.sample import RejectReason
from ragwatch.redaction.redactor import Redactor

pytestmark = pytest.mark.uncounted

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**64 - 1, 1.5, 1e308, "", "\x00", "9" * 400, "[", '{"text": []}', "[[1]]"),
    *([], {}, [[]], [{}], ["user"], [{"role": {}}], [{"type": ["user"]}]),
    *({"text": {}}, {"role": []}, {"answers": [{}]}),
    {"lc": 1, "kwargs": {}},
)
MAPPING = {
    "at": "to_number(when)",
    "contexts": "from_json(rag).hits[?sim > `0.1`].{id: key, text: snippet, score: to_number(sim)}",
    "answer": "join(' ', [reply.final, reply.final])",
    "metadata.tenant": "contains(tenant, 'n')",
}


def with_odd_values(value: Any) -> Iterator[Any]:
    """The value with one of its parts exchanged, each by each."""
    yield from ODD
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for odd in with_odd_values(part):
            changed = value.copy()
            changed[key] = odd
            yield changed


@pytest.mark.costly
@pytest.mark.parametrize("name", [*FORMATS, "custom"])
def test_any_value_is_read_or_refused(name: str) -> None:
    """Every part of every known record, exchanged for odd values; what is read can be redacted and stored.

    With many examples (`make slow`) each part is exchanged for each value, else every fifth of these pairs is tried.
    """
    readers = [build(name, MAPPING if name == "custom" else None), build("auto")]
    redactor = Redactor()
    for record in records(name):
        pairs = (value for value in with_odd_values(record) if isinstance(value, dict))
        for odd in islice(pairs, 0, None, 1 if EXAMPLES > USUAL else 5):
            for reader in readers:
                try:
                    sample = reader.read(odd, "log:1")
                except FormatError as error:
                    assert RejectReason(error.reason)  # noqa: PT017 - most are refused, and for a known reason
                    continue
                clean = redactor.redact_sample(sample)[0]
                assert isinstance(clean.answer, str)
                assert all(isinstance(context.text, str) for context in clean.contexts)
                json.dumps(clean.to_record(), allow_nan=False)
