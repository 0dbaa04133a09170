"""Guesses the format of a log from a few of its records, for `ragwatch init --print FILE`.

A known format, or a mapping of fields with likely names; both are checked by the values of all records (`suspicion`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import orjson

from ragwatch.errors import FormatError
from ragwatch.formats import CUSTOM, FORMATS, names
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.guessing.candidates import (
    Candidate,
    are_single_texts,
    context_candidates,
    text_candidates,
    turned_round,
    vary,
    with_other_texts,
)
from ragwatch.formats.guessing.log_fields import log_fields
from ragwatch.formats.guessing.optional_parts import OPTIONAL, optional_candidates
from ragwatch.formats.guessing.suspicion import suspicions
from ragwatch.formats.log_reader import split_contexts
from ragwatch.formats.record import FormatReader, Record, RecordReader
from ragwatch.formats.split import BLANK_LINE, RULE, Splitter
from ragwatch.model.sample import Sample

PARTS = ("question", "contexts", "answer")
_MAX_SHOWN_ERRORS = 3
_MAX_SHOWN = 3  # candidates for a missing part
_MAX_TRIED = 20  # records whose passages are looked for in texts
_MAX_KINDS = 4  # alternatives of one part
_SAME = 0.8
_VAGUE = names.place("contexts", "source")
_POSITION = "?"  # what the id of a sample without one begins with
_BREAKS = (("rules", RULE), ("paragraphs", BLANK_LINE))


@dataclass(frozen=True, slots=True)
class FormatGuess:
    """The guessed format of a log."""

    format: str | None  # A known format, `custom` for a proposed mapping, None if contexts or answers are in no record
    share: float  # share of the records that it can read; 0 without records
    errors: tuple[str, ...] = ()  # errors of the first records that it cannot read
    mapping: Mapping[str, str] = field(default_factory=dict)  # its JMESPath expressions, as in the configuration
    problems: tuple[str, ...] = ()  # why what it reads is probably wrong; empty if every check of its values passed
    # By part, the fields that are equally likely, the chosen one first; a single one where only its values, and not
    # its name, fit. A person has to decide.
    decisions: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    # By part that no field fits, the most likely fields
    missing: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    split: Splitter | None = None  # how the passages are cut out of a text; None to take contexts as they are
    added: Mapping[str, str] = field(default_factory=dict)  # expressions for what a known format does not read
    apart: bool = False  # whether contexts and answers occur only in separate records

    @property
    def is_doubtful(self) -> bool:
        """Whether it should not be used before a person has looked at it."""
        return bool(self.problems or self.decisions)


def guess(records: Sequence[Record]) -> FormatGuess:
    """Return what reads most of the records without a suspicion: a known format, or a mapping of likely fields."""
    if not records:
        return FormatGuess(None, 0.0)
    listed = [*known_formats(records), propose(records)]
    best = min(listed, key=lambda one: (one.format is None, one.is_doubtful, -one.share))
    if best.share:
        return best
    close = next((name for name, shape in FORMATS.items() if shape.matches(records[0])), None)
    if close is None or best.apart:
        return best
    return _tried(close, FORMATS[close], FORMATS[close].MAPPING, records)


def known_formats(records: Sequence[Record]) -> list[FormatGuess]:
    """Return the known formats that read any of the records, the one that reads most first."""
    matching = [(name, shape) for name, shape in FORMATS.items() if any(map(shape.matches, records))]
    tried = [_tried(name, shape, shape.MAPPING, records) for name, shape in matching]
    read = [one for one in tried if one.share and not _misses_passages(FORMATS[str(one.format)], records)]
    return sorted(read, key=lambda one: -one.share)


def _misses_passages(reader: FormatReader, records: Sequence[Record]) -> bool:
    """Whether a format takes one text as contexts beside a list of passages that are not in it."""
    samples = read_all(reader, records)[0]
    taken = {context.text for one in samples if len(one.contexts) == 1 for context in one.contexts}
    if 2 * len(taken) < len(samples):
        return False
    known, whole = log_fields(records), "\n".join(taken)
    listed = (one for one in context_candidates(known, varied=vary(known)) if not are_single_texts(one))
    likely = (one for one in listed if not one.fault and one.rank < names.UNNAMED)
    firsts = (
        some[0] for one in likely for some in [*one.values.values()][:_MAX_TRIED] if isinstance(some, list) and some
    )
    return any(str(text) not in whole for text in firsts)


def read_all(reader: RecordReader, records: Sequence[Record]) -> tuple[list[Sample], list[str]]:
    """Return the samples in records, and the errors of those that hold none."""
    samples: list[Sample] = []
    errors: list[str] = []
    for position, record in enumerate(records):
        try:
            samples.append(reader.read(record, f"{_POSITION}{position}"))
        except FormatError as error:
            errors.append(str(error))
    return samples, errors


def _tried(name: str, reader: FormatReader, mapping: Mapping[str, str], records: Sequence[Record]) -> FormatGuess:
    samples, errors = read_all(reader, records)
    added = {} if name == CUSTOM else _unread(samples, records)
    if added:
        samples, errors = read_all(MappingReader(added, reader), records)
    splitter = _cut_at_breaks(samples, records)
    share, shown = len(samples) / len(records), tuple(errors[:_MAX_SHOWN_ERRORS])
    return FormatGuess(name, share, shown, mapping, problems_of(samples, splitter), split=splitter, added=added)


def _unread(samples: Sequence[Sample], records: Sequence[Record]) -> dict[str, str]:
    """Expressions of the id and the time, where a known format reads none in any record and a field looks like it."""
    unread = {"id": all(one.id.startswith(_POSITION) for one in samples), "at": all(one.at is None for one in samples)}
    unread["question"] = all(one.question is None for one in samples)
    if not samples or not any(unread.values()):
        return {}
    known, every = log_fields(records), range(len(records))
    listed = {part: optional_candidates(part, known, (), every) for part in ("id", "at") if unread[part]}
    if unread["question"]:
        asked = text_candidates("question", known, varied=vary(known))
        listed["question"] = [one for one in asked if not one.fault and one.rank < names.UNNAMED]
    return {part: some[0].expression for part, some in listed.items() if some and len(some[0].values) == len(records)}


def problems_of(samples: Sequence[Sample], splitter: Splitter | None) -> tuple[str, ...]:
    """Return why samples were probably read wrongly, with the passages that a splitter cuts out, where it cuts any."""
    whole = []
    for sample in samples:
        with suppress(FormatError):
            whole.append(sample if splitter is None else split_contexts(sample, splitter))
    return tuple(suspicions(whole))


def _cut_at_breaks(samples: Sequence[Sample], records: Sequence[Record]) -> Splitter | None:
    """What cuts contexts that are one text, at rules or blank lines; None if most have none, or are lists."""
    single = [sample.contexts[0].text.strip() for sample in samples if len(sample.contexts) == 1]
    if not single or 2 * len(single) < len(samples):
        return None
    texts, fields_of_text = {*single}, (field for field in log_fields(records) if not field.in_list)
    logged = {value.strip() for field in fields_of_text for value in field.values.values() if isinstance(value, str)}
    if not texts <= logged:
        return None
    for kind, mark in _BREAKS:
        several = [text for text in texts if mark.search(text)]
        if not several or 2 * len(several) < len(texts):
            continue
        if len({mark.split(text, 1)[0] for text in several}) == 1 < len(several):
            return None  # they begin with an instruction
        splitter = Splitter(kind)
        cut = sum(len(splitter.passages(text) or ()) == len(mark.findall(text)) + 1 for text in several)
        if cut >= _SAME * len(several):
            return splitter
    return None


def propose(records: Sequence[Record]) -> FormatGuess:
    """Return a mapping of the fields whose names and values look right, and what is missing in it."""
    unlike = list({orjson.dumps(record, default=str): record for record in records}.values())
    parts = _Parts(unlike)
    missing = {part: parts.likely(part) for part in ("answer", "contexts", "question") if not parts.chosen[part]}
    if "question" not in missing and (others := parts.other_questions()):
        missing["question"] = others
    if missing.keys() - {"question"} or parts.is_apart:
        apart = parts.apart()
        errors = (apart,) if apart else tuple(map(parts.lacking, missing))
        mapping = parts.mapping()
        if apart:
            missing |= {"answer": tuple(parts.listed["answer"][:_MAX_SHOWN])}
            mapping.pop("answer", None)
        return FormatGuess(None, 0.0, errors, mapping, missing=missing, apart=bool(apart))
    tried = _tried(CUSTOM, MappingReader(parts.mapping()), parts.mapping(), records)
    return replace(tried, missing=missing, decisions=parts.decisions())


class _Parts:
    """The candidates for each part, and those that are chosen: several where records of several kinds need them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._number = len(records)
        self._fields = log_fields(records)
        varied = vary(self._fields)
        contexts = context_candidates(self._fields, varied=varied)
        likely = [one for one in contexts if not one.fault]
        named = [one for one in likely if one.rank < names.UNNAMED]
        inside = tuple(f"{one.field.path}[]" for one in named or likely)
        outside = [one for one in self._fields if not one.path.startswith(inside)] if inside else self._fields
        self.listed = {"contexts": contexts}
        self.listed |= {part: text_candidates(part, outside, varied=varied) for part in ("question", "answer")}
        for part, others in (("question", ("answer", "contexts")), ("answer", ("contexts",))):
            taken = {one.expression for one in self._usable(part)[:1]}
            for other in others:
                self.listed[other] = [one for one in self.listed[other] if one.expression not in taken]
        whole = self._whole()
        self.chosen = {part: self._alternatives(self._usable(part), whole) for part in PARTS}
        answer = self.chosen["answer"][:1]
        texts = {one.expression for part in PARTS for one in self.chosen[part]}
        for part in OPTIONAL:
            listed = optional_candidates(part, self._fields, answer[0].field.parent if answer else (), whole)
            listed = [one for one in listed if one.expression not in texts]
            self.chosen[part] = self._alternatives(listed, whole) if part != "history" else listed[:1]

    def _usable(self, part: str) -> list[Candidate]:
        """The candidates that may be chosen: a text without a telling name is neither a question nor an answer."""
        listed = [one for one in self.listed[part] if not one.fault]
        named = [one for one in listed if one.rank < names.UNNAMED]
        if named or part != "contexts":
            return named
        lists = (one for one in listed if one.expression.endswith(("}", "})")) or not are_single_texts(one))
        return [one for one in lists if not names.is_unused(one.field.names)]

    def _whole(self) -> set[int]:
        """The records that hold contexts and an answer; those with either, if none holds both."""
        answered, retrieved = self._places("answer"), self._places("contexts")
        both = answered & retrieved
        self.is_apart = bool(answered and retrieved) and not both
        return both or answered | retrieved

    def _places(self, part: str) -> set[int]:
        return {place for one in self._usable(part) for place in one.values}

    @staticmethod
    def _alternatives(listed: Sequence[Candidate], whole: set[int]) -> list[Candidate]:
        """The best candidate, and further ones for the records in which the others are missing."""
        chosen: list[Candidate] = []
        left = set(whole)
        for one in listed:
            if left & one.values.keys() and len(chosen) < _MAX_KINDS:
                chosen.append(one)
                left -= one.values.keys()
        return chosen

    def mapping(self) -> dict[str, str]:
        """The expressions of what was chosen."""
        order = ("id", "at", *PARTS, *(part for part in OPTIONAL if part not in ("id", "at")))
        mapping = {
            part: " || ".join(one.expression for one in self.chosen[part]) for part in order if self.chosen[part]
        }
        several = [one.expression for one in self.chosen["contexts"]]
        if len(several) > 1:  # an empty list of contexts is a list, which || would pass over
            mapping["contexts"] = f"not_null({', '.join(several)})"
        return mapping

    def likely(self, part: str) -> tuple[Candidate, ...]:
        """The three most likely fields of a part."""
        taken = {one.expression for chosen in self.chosen.values() for one in chosen}
        return tuple([one for one in self.listed[part] if one.expression not in taken][:_MAX_SHOWN])

    def other_questions(self) -> tuple[Candidate, ...]:
        """The most likely fields of the question in many records that have none of those that were chosen."""
        left = self._whole().difference(*(one.values for one in self.chosen["question"]))
        if len(left) < (1 - _SAME) * len(self._whole()):
            return ()
        return tuple(one for one in self.likely("question") if left & one.values.keys())

    def lacking(self, part: str) -> str:
        """Why a part is missing."""
        named = [one for one in self.listed[part] if one.fault]
        logged = " and ".join(other for other in PARTS if self.chosen[other])
        logged = f"{logged} {'are' if ' and ' in logged else 'is'} logged, but " if logged else ""
        if part == "contexts" and named and "names" in named[0].fault:
            holder = named[0].field.names[0]
            return (
                f"{logged}no field looks like contexts: {holder} holds names of documents and no text; log the text of"
                " each passage that the retriever returned"
            )
        return f"{logged}no field looks like {part}" + (f": {named[0].shown}" if named else "")

    def decisions(self) -> dict[str, tuple[Candidate, ...]]:
        """What a person has to decide, by part; see `FormatGuess`."""
        decisions = {}
        for part in PARTS:
            chosen = self.chosen[part]
            rest = [one for one in self._usable(part) if one not in chosen] if chosen else []
            others = [one for one in rest if _is_as_likely(one, chosen[0])]
            if part == "contexts" and chosen and not others:
                others = [one for one in rest if one.rank < _VAGUE and _lacks_passages(one, chosen[0])]
                others = others or with_other_texts(chosen[0])
            if part == "contexts" and not others and chosen and (reversed_ := turned_round(chosen[0])):
                others = [reversed_]
            either = any(names.says_little(part, one.rank) for one in chosen)  # its name may be that of the question
            blind = part == "answer" and not self.chosen["question"] and either
            if others or blind or (part == "contexts" and any(map(_is_vague, chosen))):
                decisions[part] = (chosen[0], *others)
        return decisions

    def apart(self) -> str:
        """Whether retrieval and answer are in separate records; empty if they are not."""
        retrieved = self._places("contexts")
        answered = self._places("answer") - retrieved
        in_same = any(not one.fault and retrieved & one.values.keys() for one in self.listed["answer"])
        if not retrieved or not (answered or (self._number > len(retrieved) and not in_same)):
            return ""
        answers = f"an answer in {len(answered)} others" if answered else "no answer was recognised in any"
        return (
            f"retrieval and answer seem to be in separate records: contexts are in {len(retrieved)} of {self._number}"
            f" records, {answers}; a sample is one record, so log the answer together with the contexts that it was"
            " made from"
        )


def _is_vague(contexts: Candidate) -> bool:
    """Whether the name of contexts says nothing, or may be that of another text."""
    return contexts.rank == names.UNNAMED or (contexts.rank >= _VAGUE and are_single_texts(contexts))


def _is_as_likely(other: Candidate, chosen: Candidate) -> bool:
    """Whether another field has a name as good, at the same depth, and other values."""
    if round(other.rank) != round(chosen.rank) or chosen.rank < round(chosen.rank):
        return False
    both = other.values.keys() & chosen.values.keys()
    same = sum(other.values[place] == chosen.values[place] for place in both)
    return other.field.depth == chosen.field.depth and bool(both) and same < _SAME * len(both)


def _lacks_passages(text: Candidate, chosen: Candidate) -> bool:
    """Whether one text beside a list does not hold its passages."""
    both = text.values.keys() & chosen.values.keys()
    pairs = [(str(text.values[place]), chosen.values[place]) for place in both]
    missing = sum(isinstance(some, list) and bool(some) and str(some[0]) not in whole for whole, some in pairs)
    return are_single_texts(text) and not are_single_texts(chosen) and missing > (1 - _SAME) * len(both)


def holds_answer(record: Record) -> bool:
    """Return whether a field of a record is named like an answer, and another one like a question or contexts."""
    texts = [one for one in log_fields([record]) if not one.in_list and one.values[0] not in (None, "", [], {})]
    ranked = [(names.rank("answer", *one.names), one.names) for one in texts if isinstance(one.values[0], str)]
    answers = [path for rank, path in ranked if not names.says_little("answer", rank)]
    parts = [(part, one.names) for part in ("question", "contexts") for one in texts]
    others = [path for part, path in parts if names.rank(part, *path) < names.UNNAMED]
    return any(other != answer for answer in answers for other in others)
