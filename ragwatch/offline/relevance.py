"""Collects the test cases with relevance judgements in the files of `gate` and `compare`.

A row with relevance judgements needs no answer: it is a test case of retrieval, and no judge reads it. Its contexts may
be given without texts, as `retrieved_ids` or as `contexts` of `{"id"}`. `retrieved_ids` beside an answer are what the
retriever returned, in its order; the contexts are what the generator saw of it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from ragwatch.errors import ConfigError, FormatError
from ragwatch.formats import fields, relevance
from ragwatch.formats.record import Record
from ragwatch.formats.relevance import Qrels, parse_qrels
from ragwatch.model.sample import Context, Sample
from ragwatch.probes.similarity import similarity
from ragwatch.statistics.question_scores import question_of
from ragwatch.statistics.ranking import Similarity
from ragwatch.statistics.relevance import RankedCase, rank_sample

MAX_QRELS_BYTES = 512 * 1024**2
_RETRIEVED = "retrieved_ids"


def read_qrels(path: Path) -> Qrels:
    """Read a file of relevance judgements in the format of TREC or BEIR."""
    try:
        if path.stat().st_size > MAX_QRELS_BYTES:
            raise ConfigError(f"--qrels {path}: larger than {MAX_QRELS_BYTES} bytes; leave out queries without a row")
        return parse_qrels(path.read_text(encoding="utf-8"), f"--qrels {path}")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--qrels {path}: cannot be read: {error}") from error


class RelevanceCases:
    """Test cases with relevance judgements, by row id in a file, which replace those of the row, or in the row."""

    def __init__(self, qrels: Qrels | None = None) -> None:
        self._qrels = qrels or {}
        self._used: set[str] = set()
        self._retrieved: tuple[str, ...] | None = None  # of the record that was completed last
        self.cases: list[RankedCase] = []  # that were added, in order
        self.by_id: dict[str, RankedCase] = {}  # the same by the id of their row, as reports show it

    def complete(self, record: Record) -> Record:
        """Complete a canonical record of a retrieval test case, whose answer and texts may be missing.

        `add` takes the sample of this record next, and ranks its `retrieved_ids` where it has them.
        """
        self._retrieved = None
        if not self._is_judged(record):
            return record
        retrieved = record.get(_RETRIEVED)
        if retrieved is not None and not isinstance(retrieved, list):
            raise fields.wrong(_RETRIEVED, "a list", retrieved)
        if retrieved is not None:
            names = (fields.identity(name, f"{_RETRIEVED}[{rank}]") for rank, name in enumerate(retrieved))
            self._retrieved = tuple(name or "" for name in names)
        if record.get("answer") is not None:
            return record
        contexts = record.get("contexts") if retrieved is None else [{"id": name} for name in retrieved]
        if isinstance(contexts, list):
            contexts = [_with_text(context) for context in contexts]
        completed: dict[str, object] = {**record, "answer": "", "question": record.get("question")}
        return completed if contexts is None else completed | {"contexts": contexts}

    def _is_judged(self, record: Record) -> bool:
        if any(record.get(key) is not None for key in relevance.KEYS):
            return True
        return bool(self._qrels) and fields.identity(fields.first(record, fields.ID_KEYS)[1], "id") in self._qrels

    def add(self, sample: Sample, route: str, redact: Callable[[Sample], Sample]) -> Sample | None:
        """Add a sample if it has relevance judgements; `redact` is for reports.

        Returns it with these judgements; None if there is nothing to judge, because it has no answer.
        """
        if sample.id in self._qrels:
            self._used.add(sample.id)
            sample = sample._replace(relevant=self._qrels[sample.id])
        if sample.relevant is None:
            return sample
        by_text = any(not one.id for one in sample.relevant)
        ranked = sample if self._retrieved is None else sample._replace(contexts=_named(sample, self._retrieved))
        case = rank_sample(ranked, route=route or sample.route, similar=self._similar if by_text else None)
        case = replace(case, question=question_of(redact(sample)))
        self.cases.append(case)
        self.by_id[case.question.id] = case
        return sample if sample.answer.strip() else None

    def warnings(self) -> Iterator[str]:
        """Warn of relevance judgements that belong to no row."""
        unused = [query for query in self._qrels if query not in self._used]
        if unused:
            yield (
                f"--qrels: {len(unused)} of {len(self._qrels)} queries have no row with their id, such as {unused[0]};"
                " they are left out"
            )

    @cached_property
    def _similar(self) -> Similarity:
        return similarity()


def _named(sample: Sample, names: Sequence[str]) -> tuple[Context, ...]:
    """The passages with these ids, in their order, with the texts of the contexts if there is one for each."""
    texts = [context.text for context in sample.contexts]
    aligned = texts if len(texts) == len(names) else [""] * len(names)
    return tuple(Context(text, name or None) for text, name in zip(aligned, names, strict=True))


def _with_text(context: object) -> object:
    if isinstance(context, dict) and fields.first(context, fields.TEXT_KEYS)[1] is None:
        if fields.first(context, fields.CONTEXT_ID_KEYS)[1] is None:
            raise FormatError("missing_field", "contexts", "a context has neither an id nor a text")
        return {**context, "text": ""}
    return context
