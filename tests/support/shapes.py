"""The same few answers as logs of any shape, and the samples that were meant."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ragwatch.formats import build
from ragwatch.formats.guessing.guess import FormatGuess
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.record import Record
from ragwatch.model.sample import Sample

DOCUMENTS = {
    "kb/warranty.md": "The warranty of all kettles lasts two years from the day of purchase.",
    "kb/returns.md": "Goods can be returned within 30 days. The customer pays the return shipping.",
    "kb/shipping.md": "Standard shipping takes three to five working days and costs 4.90 EUR.",
    "kb/payment.md": "We accept credit cards, PayPal and bank transfer.",
}
ASKED = {
    "kb/warranty.md": ("How long is the warranty?", "It lasts two years from the day of purchase."),
    "kb/returns.md": ("Can I return goods?", "Yes, you can return goods within 30 days."),
    "kb/shipping.md": ("How long does shipping take?", "Standard shipping takes three to five working days."),
    "kb/payment.md": ("Which payments do you accept?", "You can pay by card, PayPal and bank transfer."),
}
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
MAX_CONTEXTS = 3
Context = tuple[str, str]
Shape = Callable[[datetime, str, str, list[Context]], Record]


def records(shape: Shape) -> tuple[list[Record], list[Sample]]:
    """Records of a shape, and the samples in them."""
    logged, meant = [], []
    for number, (name, (question, answer)) in enumerate(ASKED.items()):
        others = [one for one in DOCUMENTS if one != name]
        contexts = [(one, DOCUMENTS[one]) for one in (name, *others[: MAX_CONTEXTS - 1 - number % 2])]
        at = START + timedelta(seconds=37 * number)
        logged.append(shape(at, question, answer, contexts))
        row = {"at": at.timestamp(), "question": question, "answer": answer}
        row["contexts"] = [{"id": one, "text": text} for one, text in contexts]
        meant.append(build("canonical").read(row, "x"))
    return logged, meant


def read(guessed: FormatGuess, logged: list[Record]) -> list[Sample]:
    """What a guess reads."""
    mapping = guessed.mapping if guessed.format == "custom" else guessed.added
    split = None if guessed.split is None else guessed.split.option
    reader = LogReader(RecordRules(str(guessed.format), mapping, split=split))
    return [reader.read(record, "x") for record in logged]


def objects(contexts: list[Context], *, name: str = "id", text: str = "text", **more: Any) -> list[dict[str, Any]]:
    """Contexts as objects with a place in the list, which starts with 1."""
    rows = ({name: one, text: said} for one, said in contexts)
    return [row | {key: value(place) for key, value in more.items()} for place, row in enumerate(rows, start=1)]
