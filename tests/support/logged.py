"""The answered question that every file of tests/data/formats holds, each in another library's spelling."""

import json
from pathlib import Path
from typing import Any

from ragwatch.model.sample import Context, Role, Sample, Turn

DATA = Path(__file__).parents[1] / "data" / "formats"
QUESTION, ANSWER = "How long are invoices kept?", "Invoices are kept for ten years."
TEXTS = ("Invoices are kept for ten years after the year ends.", "Contracts are kept for six years.")
FULL = (Context(TEXTS[0], "d1", 0.9), Context(TEXTS[1], "d2", 0.4))
PLAIN = tuple(Context(text) for text in TEXTS)
NAMED = tuple(context._replace(score=None) for context in FULL)
SAMPLE = Sample("log:1", QUESTION, FULL, ANSWER)
AT = 1777629600.0
GREETING = (Turn(Role.USER, "Hello"), Turn(Role.ASSISTANT, "Hello!"))


def records(name: str) -> list[dict[str, Any]]:
    """The records of one file."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
