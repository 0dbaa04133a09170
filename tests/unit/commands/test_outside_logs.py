"""Logs as services write them: each is read rightly at the first `map`, or refused with the right reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from support.command_line import command

from ragwatch.config import parse
from ragwatch.errors import FormatError
from ragwatch.formats.log_reader import LogReader
from ragwatch.model.sample import Sample, SkipReason
from ragwatch.offline.input_files import PartFiles
from ragwatch.ports.capabilities import record_rules
from ragwatch.sources.join import Options as JoinOptions

LOGS = Path(__file__).parents[2] / "data" / "outside" / "logs"
TRUTH = {
    "How long is the kettle warranty?": (
        ("The kettle warranty lasts two years from purchase.", "Warranty claims need the receipt of the kettle."),
        "The kettle is covered for two years.",
    ),
    "Which filter fits the X2 jug?": (
        ("Filter F9 fits the X2 and X3 jugs.", "Filters should be replaced every eight weeks."),
        "The X2 jug takes filter F9.",
    ),
    "Can I wash the lid in a dishwasher?": (
        ("The lid can be washed in the dishwasher.", "The base must never be put under water."),
        "Yes, the lid is dishwasher safe.",
    ),
}
"""Question, contexts and answer of every log."""
READ = ""
NAMES = "names of documents and no text; log the text of each passage"
ASK = "is this what was retrieved?"
HALF = "3 records would be rejected: if they are no answers, select the others with where"
EXPECTED = {path.stem: READ for path in sorted(LOGS.glob("*.jsonl"))} | {
    "file_names_as_contexts": NAMES,
    "librechat_messages": HALF,
    "phoenix_qa": ASK,  # a reference answer has the same name
    "titles_only": NAMES,
}
"""Every log is read but for these, each with the reason."""

TIMED = frozenset({
    "azure_oyd", "bedrock_question", "dify_messages", "file_search_question", "file_search_req_resp",
    "helicone_export", "id_constant", "java_camel", "litellm_standard_payload", "mlflow_trace", "openwebui_export",
})  # fmt: skip
"""Logs with the time of each answer."""


def _map(path: Path) -> Result:
    return command("init", "--print", path)


def samples_of(source: dict[str, Any], path: Path) -> list[Sample]:
    """What a proposed source reads of a file; a record that it rejects or skips is an error."""
    item = source if source.get("kind") else {"kind": "tail", "name": "app", "path": str(path), **source}
    options = parse({"state": "/s", "sources": [item]}, folder=Path()).sources[0].options
    reader = LogReader(record_rules(options))
    read_line = PartFiles(options).parser(str(path)).parse if isinstance(options, JoinOptions) else reader.parse
    samples = []
    for number, line in enumerate(path.read_bytes().splitlines()):
        parsed = read_line(line)
        if parsed is not None:
            assert not isinstance(parsed, SkipReason)
            samples.append(reader.read(parsed[0], str(number)))
    return samples


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_is_read_rightly_or_refused_with_the_reason(name: str) -> None:
    """What a proposal reads is true; the exit code is 0 only if it may be used as it is."""
    path = LOGS / f"{name}.jsonl"
    result, reason = _map(path), EXPECTED[name]
    assert (result.return_value == 0) == (reason == READ), result.output
    assert reason in result.stderr
    source = yaml.safe_load(result.stdout)
    if reason == HALF:
        return
    if reason not in (READ, ASK):
        assert not {"answer", "contexts"} <= source["mapping"].keys()
        return
    try:
        samples = samples_of(source, path)
    except FormatError as error:
        pytest.fail(f"{error}: {result.stdout}")
    for sample in samples:
        contexts, answer = TRUTH[str(sample.question)]
        assert (tuple(context.text for context in sample.contexts), sample.answer[: len(answer)]) == (contexts, answer)
        assert sample.at is not None or name not in TIMED
        assert sample.at is None or 1.7e9 < sample.at < 1.8e9
    assert len({sample.id for sample in samples}) == len(samples)
    assert samples or source["kind"] == "join"
    if source.get("format") != "custom" and "mapping" not in source:
        assert samples == samples_of(source | {"format": "auto"}, path)
