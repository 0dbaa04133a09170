"""Traces of many conventions become the same record: question, answer, and contexts in rank order."""

from __future__ import annotations

import random

import pytest
from support.framework_traces import TRACES
from support.spans import TRACE, as_json, as_protobuf
from support.traces import ANSWER, QUESTION

from ragwatch.formats import canonical
from ragwatch.formats.traces.assemble import assemble
from ragwatch.sources.otlp import json_request, protobuf_request


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_becomes_its_record(name: str) -> None:
    """Field by field, from either encoding, whatever the order of the spans."""
    make, expected = TRACES[name]
    spans = make()
    decoded = [protobuf_request.spans_of(as_protobuf(spans)).spans, json_request.spans_of(as_json(spans)).spans]
    random.Random(1).shuffle(decoded[1])
    records = []
    for some in decoded:
        result = assemble(some)
        assert (result.refused, len(result.records)) == ([], 1)
        records.append(result.records[0])
    assert records[0] == records[1]
    sample = canonical.read(records[0], "fallback")
    assert (sample.id, sample.trace_id, sample.question, sample.answer) == (TRACE, TRACE, QUESTION, ANSWER)
    assert tuple(context.text for context in sample.contexts) == expected.texts
    assert tuple(context.id for context in sample.contexts) == expected.ids
    assert tuple(context.score for context in sample.contexts) == expected.scores
    assert tuple((str(turn.role), turn.text) for turn in sample.history) == expected.history
    assert sample.route == "shop"
