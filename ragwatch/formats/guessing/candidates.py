"""Which fields of a log may be a part of its samples: by their names, and their values over all records."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragwatch.formats import fields, names, retrieved
from ragwatch.formats.guessing.log_fields import LogField, quoted
from ragwatch.formats.guessing.suspicion import (
    MAX_STATUSES,
    MIN_DISTINCT,
    MIN_STATUS_SAMPLES,
    NO_WORDS,
    example,
    is_name,
    is_prompt,
)
from ragwatch.formats.messages import is_message, role_name

_NUMBERED = re.compile(r"(\D*?[^\W\d_])[_-]?\d{1,2}")

_MOST = 0.8
_ONLY_TEXT = re.compile(r"(.+\[\]\.)\{text: ([^,]+)\}")
_MAX_NAME_WORDS = 2
_MESSAGE_PARTS = ("text", "output_text", "input_text", "thinking", "tool_use")
_DETAILS = ("metadata", "meta")
_PROMPTERS = ("user", "human", "system", "developer")
_PAIRS = ([dict, float], [dict, int])  # a document with its score
Values = Mapping[int, object]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A field that may be a part of the samples."""

    expression: str  # JMESPath expression that extracts it
    rank: float  # how likely its name is, the lower the better; `names.UNNAMED` if it says nothing
    field: LogField  # the field
    values: Values  # what the expression extracts, by the position of the record
    fault: str = ""  # why its values cannot be the part; empty if they can

    @property
    def shown(self) -> str:
        """Its expression, with a value and what is wrong with it, for people."""
        value = next(iter(self.values.values()), None)
        first = value[-1 if self.expression.endswith("[-1]") else 0] if isinstance(value, list) and value else value
        return f"{self.expression}  {example(first)}" + (f" ({self.fault})" if self.fault else "")


def vary(known: Iterable[LogField]) -> bool:
    """Return whether some texts differ between records: in a log of one question, every field is the same."""
    lists = ((value if isinstance(value, list) else [value] for value in field.values.values()) for field in known)
    return any(len({str(one) for one in some if any(map(_is_sentence, one))}) >= MIN_DISTINCT for some in lists)


def _is_sentence(value: object) -> bool:
    return isinstance(value, str) and len(value.split()) > _MAX_NAME_WORDS


def text_candidates(part: str, known: Sequence[LogField], *, varied: bool) -> list[Candidate]:
    """The texts that may be the question or the answer, the best first; if texts vary, none that is the same."""
    listed = []
    for field in known:
        values = {position: value for position, value in field.values.items() if _is_text(value)}
        rank = names.rank(part, *field.names)
        last = [value[-1] if isinstance(value, list) else value for value in values.values()]
        is_prose = sum(isinstance(text, str) and not is_name(text) for text in last) >= _MOST * len(last)
        if not values or (names.says_little(part, rank) and not is_prose) or (rank == names.UNNAMED and field.in_list):
            continue
        fault = "stands inside a list" if field.in_list else _text_fault(part, values, varied=varied)
        expression = f"{field.path} | [-1]" if field.in_list else field.path
        listed.append(Candidate(expression, rank, field, values, fault))
    if not any(not one.fault and one.rank < names.UNNAMED for one in listed):
        listed += _of_conversations(part, known)
    strong = [one for one in listed if not one.fault and not names.says_little(part, one.rank)]
    covered = {place for one in strong for place in one.values}
    if strong:  # instead of names that say less, which are only shown for other records
        listed = [
            replace(one, rank=names.UNNAMED) if names.says_little(part, one.rank) else one
            for one in listed
            if one.rank == names.UNNAMED or not names.says_little(part, one.rank) or one.values.keys() - covered
        ]
    return sorted(listed, key=lambda one: (bool(one.fault), one.rank, one.field.depth))


def _of_conversations(part: str, known: Sequence[LogField]) -> Iterator[Candidate]:
    """The question or the answer in each list of messages, as names that say little."""
    name, read = ("question_of", retrieved.question_of) if part == "question" else ("answer_of", retrieved.answer_of)
    for field in known:
        logged = [value for value in field.values.values() if value]
        if field.in_list or not logged or not all(map(is_conversation, logged)):
            continue
        said = {place: read(value) for place, value in field.values.items()}
        values = {place: text for place, text in said.items() if text}
        if values:
            yield Candidate(f"{name}({field.path})", names.place(part, "message"), field, values)


def _is_text(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and bool(value.strip())


def _text_fault(part: str, values: Values, *, varied: bool) -> str:
    texts = [str(value) for value in values.values()]
    different = set(texts)
    if varied and len(texts) >= MIN_DISTINCT and len(different) == 1:
        return "is the same in every record"
    if sum(NO_WORDS.fullmatch(text.strip()) is not None for text in texts) > _MOST * len(texts):
        return "is an id, a number or a link"
    if part == "question" and sum(is_prompt(text) for text in texts) > _MOST * len(texts):
        return "is a whole prompt"
    words = all(len(text.split()) == 1 and text.isascii() for text in texts)
    if part == "answer" and words and len(different) <= MAX_STATUSES and len(texts) >= MIN_STATUS_SAMPLES:
        return "is one of a few words, like a status"
    return ""


def context_candidates(known: Sequence[LogField], *, varied: bool) -> list[Candidate]:
    """The lists and texts that may be what was retrieved, the best first; see `text_candidates`."""
    listed: list[Candidate] = []
    messages = tuple(f"{field.path}[]" for field in known if any(map(is_conversation, field.values.values())))
    for field in known:
        if field.path.startswith(messages) or any(
            field.path.startswith(f"{one.field.path}[]")
            for one in listed
            if one.rank < names.UNNAMED and one.expression.endswith(("}", "})"))
        ):
            continue  # inside a list that is a candidate itself
        expression, values = _extracted(field, known)
        rank = names.rank("contexts", *field.names)
        if not values or (rank == names.UNNAMED and all(isinstance(value, str) for value in values.values())):
            continue
        fault = _contexts_fault(values, varied=varied)
        listed.append(Candidate(expression, rank, field, values, fault))
    if not any(not one.fault and one.rank < names.UNNAMED for one in listed):
        listed += [*_in_messages(known, varied=varied), *_numbered(known, varied=varied)]
    return sorted(listed, key=lambda one: (bool(one.fault), are_single_texts(one), one.rank, one.field.depth))


def _in_messages(known: Sequence[LogField], *, varied: bool) -> Iterator[Candidate]:
    """What tools returned in each conversation or message; prompts are cut where no part of a log holds passages."""
    for field in known:
        logged = {place: value for place, value in field.values.items() if is_conversation(value) or is_message(value)}
        rows = {place: retrieved.retrieved(_not_prompts(value)) for place, value in logged.items()}
        values = {place: [one["text"] for one in some] for place, some in rows.items() if isinstance(some, list)}
        if any(values.values()) and not field.in_list:
            fault = _contexts_fault(values, varied=varied)
            yield Candidate(f"retrieved({field.path})", names.place("contexts", "result"), field, values, fault)


def _not_prompts(messages: object) -> list[object]:
    listed = messages if isinstance(messages, list) else [messages]
    return [one for one in listed if isinstance(one, dict) and role_name(one) not in _PROMPTERS]


def _numbered(known: Sequence[LogField], *, varied: bool) -> Iterator[Candidate]:
    """Texts whose names differ in a number, such as `context_1` and `context_2`."""
    groups: dict[tuple[str, ...], list[LogField]] = {}
    for field in known:
        stem = _NUMBERED.fullmatch(field.names[-1])
        if stem and not field.in_list and all(isinstance(one, str | None) for one in field.values.values()):
            groups.setdefault((*field.parent, stem[1]), []).append(field)
    for path, members in groups.items():
        rank = names.rank("contexts", *path)
        places = {place for field in members for place in field.values}
        values = {place: [text for field in members if (text := field.values.get(place))] for place in places}
        if len(members) > 1 and rank < names.UNNAMED:
            expression = f"[{', '.join(field.path for field in members)}][?@]"
            yield Candidate(expression, rank, members[0], values, _contexts_fault(values, varied=varied))


def _extracted(field: LogField, known: Sequence[LogField]) -> tuple[str, Values]:
    """Expression and values of the passages in a field; no values if it holds none."""
    lists = {position: value for position, value in field.values.items() if isinstance(value, list)}
    items = [item for value in lists.values() for item in value]
    if items and all(isinstance(one, list) and [*map(type, one)] in _PAIRS for one in items):
        rows = {place: retrieved.documents(value) for place, value in lists.items()}
        read = {place: some for place, some in rows.items() if isinstance(some, list)}
        return f"documents({field.path})", {place: [row["text"] for row in some] for place, some in read.items()}
    if items and all(isinstance(item, list) for item in items):  # a list for each of several queries
        field, lists = field._replace(path=f"{field.path}[]"), {place: _flat(some) for place, some in lists.items()}
        items = [item for value in lists.values() for item in value]
    if items and all(isinstance(item, str) for item in items):
        ids = None if field.in_list else _ids_of(field, lists, known)
        path = f"{field.path}[]" if field.in_list else field.path
        return path if ids is None else f"with_ids([{path}, {ids}])", {**lists}
    objects: list[Mapping[str, object]] = [item for item in items if isinstance(item, dict)]
    if objects and len(objects) == len(items):
        return _projected(field, lists, objects)
    if (by_id := _objects_by_id(field)) and not field.in_list:
        inner = field._replace(path=f"values({field.path})")
        expression, values = _projected(inner, by_id, [item for value in by_id.values() for item in value])
        text = _ONLY_TEXT.fullmatch(expression)
        return f"with_ids([{text[1]}{text[2]}, keys({field.path})])" if text else expression, values
    texts = {position: value for position, value in field.values.items() if isinstance(value, str) and value.strip()}
    return field.path, {} if field.in_list else texts


def _flat(value: object) -> list[object]:
    some = value if isinstance(value, list) else []
    return [one for item in some for one in (item if isinstance(item, list) else [item])]


def _ids_of(field: LogField, texts: Mapping[int, Sequence[object]], known: Sequence[LogField]) -> str | None:
    """Expression of the list beside a list of texts that has an id for each of them; None if there is none."""
    for other in known:
        in_same_object = other.parent == field.parent and other.names != field.names and not other.in_list
        if not in_same_object or names.rank("context_id", other.names[-1]) == names.UNNAMED:
            continue
        ids = {place: _flat(other.values.get(place)) for place in texts}
        are_ids = all(isinstance(one, (str, int)) for some in ids.values() for one in some)
        if are_ids and all(len(ids[place]) == len(some) for place, some in texts.items()):
            return f"{other.path}[]" if field.path.endswith("[]") else other.path
    return None


def _objects_by_id(field: LogField) -> dict[int, list[Any]]:
    """The values of an object that has one object for each passage, by its id; none if it is something else."""
    held = {place: value for place, value in field.values.items() if isinstance(value, dict) and value}
    by_id = {place: [one for one in value.values() if isinstance(one, dict)] for place, value in held.items()}
    keys = [frozenset(one) for some in by_id.values() for one in some]
    are_alike = len({*keys}) == 1 and all(len(by_id[place]) == len(value) for place, value in held.items())
    are_ranks = all(key.isdecimal() for value in held.values() for key in value)
    differ = len({frozenset(value) for value in held.values()}) >= MIN_DISTINCT
    return by_id if are_alike and (differ or are_ranks) else {}


def _projected(
    field: LogField, lists: Mapping[int, list[object]], objects: Sequence[Mapping[str, object]]
) -> tuple[str, Values]:
    """The projection of a list of objects to text, id, score and date, those that there are."""
    text = _key_of("text", objects, str) or _key_of("text", objects, str, _DETAILS)
    if text is None or any(map(_is_message_or_part, objects)):
        return field.path, {}
    ids, scores = _key_of("context_id", objects, (str, int)), _key_of("score", objects, (int, float))
    parts = {"id": ids, "text": text, "score": scores, "updated_at": _date_in(objects)}
    inner = ", ".join(f"{part}: {'.'.join(map(quoted, key))}" for part, key in parts.items() if key is not None)
    path = field.path
    if not field.in_list and (ranked := _by_rank(lists)):
        lists, path = ranked, f"sort_by({path}, &rank)"
    passages = {position: [fields.at(item, text) for item in items] for position, items in lists.items()}
    values = {position: [one for one in some if isinstance(one, str)] for position, some in passages.items()}
    expression = f"{path}[].{{{inner}}}"
    if any(len({*some}) < len(some) for some in values.values()):  # repeated for each of its uses
        return f"distinct({expression})", {position: [*dict.fromkeys(some)] for position, some in values.items()}
    return expression, values


def _by_rank(lists: Mapping[int, list[object]]) -> dict[int, list[object]]:
    """Lists of passages in the order of their ranks; none if they have no ranks, or stand in that order."""
    ranks = {place: [fields.at(item, ("rank",)) for item in items] for place, items in lists.items()}
    known = {place: [one for one in some if isinstance(one, int)] for place, some in ranks.items()}
    for place, items in lists.items():
        if sorted(known[place]) not in ([*range(len(items))], [*range(1, len(items) + 1)]):
            return {}
    if all(some == sorted(some) for some in known.values()):
        return {}
    places = {place: [some.index(rank) for rank in sorted(some)] for place, some in known.items()}
    return {place: [lists[place][one] for one in order] for place, order in places.items()}


def with_other_texts(contexts: Candidate) -> list[Candidate]:
    """The same passages with another text of theirs, whose name says as much: of the chunk, or of its parent."""
    lists = {place: value for place, value in contexts.field.values.items() if isinstance(value, list)}
    keys = _keys_of("text", [item for value in lists.values() for item in value if isinstance(item, dict)], str)
    others = []
    for rank, path in keys[1:]:
        values = {place: [fields.at(item, path) for item in value] for place, value in lists.items()}
        text, other = (f"text: {'.'.join(map(quoted, key))}" for key in (keys[0][1], path))
        if rank == keys[0][0] and text in contexts.expression and values != contexts.values:
            others.append(replace(contexts, expression=contexts.expression.replace(text, other, 1), values=values))
    return others


def turned_round(contexts: Candidate) -> Candidate | None:
    """Return the passages from the last to the first if scores improve from the first to the last; else None.

    The first passage counts as the top-ranked one. Which one it is depends on what the scores are, where their name
    does not say that they are distances.
    """
    field = contexts.field
    logged = [value for value in field.values.values() if isinstance(value, list)]
    name = _key_of("score", [item for value in logged for item in value if isinstance(item, dict)], (int, float))
    if name is None or not contexts.expression.startswith(f"{field.path}[]."):
        return None
    is_distance = "distance" in names.tokens(name[-1])
    lists = [[fields.at(item, name) for item in value] for value in logged]
    differ = [some for some in lists if len({*some}) > 1 and all(isinstance(one, (int, float)) for one in some)]
    better = sum(some == sorted(some, key=lambda one: float(str(one)), reverse=is_distance) for some in differ)
    if len(differ) < MIN_DISTINCT or better < _MOST * len(differ):
        return None
    values = {place: value[::-1] if isinstance(value, list) else value for place, value in contexts.values.items()}
    expression = contexts.expression.replace(f"{field.path}[]", f"reverse({field.path})[]", 1)
    return replace(contexts, expression=expression, values=values)


def _date_in(objects: Sequence[Mapping[str, object]]) -> tuple[str, ...] | None:
    """Path of the most telling date of documents, in the objects or one level deeper."""
    places: list[tuple[tuple[str, ...], Mapping[str, object]]] = [((), item) for item in objects]
    places += [((key,), inner) for item in objects for key, inner in item.items() if isinstance(inner, dict)]
    dates = [(path, fields.logged_date(place)) for path, place in places]
    dated = [(*path, key) for path, (key, value) in dates if value is not None]
    return min(dated, key=lambda path: (fields.DATE_KEYS.index(path[-1]), len(path)), default=None)


def _is_message_or_part(item: Mapping[str, object]) -> bool:
    """Whether an item of a list is a message of a conversation, a part of one, or a choice of a completion."""
    inner = any(isinstance(value, dict) and "role" in value for value in item.values())
    return inner or is_message(item) or item.get("type") in _MESSAGE_PARTS


def _key_of(
    part: str, objects: Sequence[Mapping[str, object]], kind: type | tuple[type, ...], also: Collection[str] = ()
) -> tuple[str, ...] | None:
    """Path of the most likely name of a part of passages, in the objects or one level deeper; `also` in details."""
    return next((path for _, path in _keys_of(part, objects, kind, also)), None)


def _keys_of(
    part: str, objects: Sequence[Mapping[str, object]], kind: type | tuple[type, ...], also: Collection[str] = ()
) -> list[tuple[tuple[int, float], tuple[str, ...]]]:
    """Depth and rank, and path, of the names of a part that most passages have, the most likely one first."""
    ranked: dict[tuple[str, ...], tuple[int, float]] = {}
    for item in objects:
        for path, value in _leaves(item, also):
            position = names.rank(part, *(path if part == "text" else path[-1:]))
            if position < names.UNNAMED and isinstance(value, kind) and not isinstance(value, bool) and value != "":
                ranked.setdefault(path, (len(path), position))
    times = Counter(path for item in objects for path in ranked if fields.at(item, path) is not None)
    often = [(rank, path) for path, rank in ranked.items() if 2 * times[path] > max(times.values())]
    return sorted(often, key=lambda one: one[0])


def _leaves(item: Mapping[str, object], also: Collection[str]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in item.items():
        yield (key,), value
        if isinstance(value, dict) and (key not in _DETAILS or key in also):
            yield from (((key, inner), one) for inner, one in value.items())


def _contexts_fault(values: Values, *, varied: bool) -> str:
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    texts = [text for value in lists for text in value if isinstance(text, str) and text.strip()]
    if not texts:
        return "holds no text"
    if sum(map(is_name, texts)) >= _MOST * len(texts):
        return "names of documents, not their texts"
    if varied and len(lists) >= MIN_DISTINCT and len({str(value) for value in lists}) == 1:
        return "is the same in every record"
    if all(map(is_prompt, texts)):
        return "is a whole prompt"
    objects = [value for text in texts if isinstance(value := fields.embedded(text), dict)]
    are_lists = all(isinstance(value, list) for value in values.values())
    return "is JSON in a text" if are_lists and len(objects) >= _MOST * len(texts) else ""


def is_conversation(value: object) -> bool:
    """Return whether a value is a list of messages, each with a role."""
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def are_single_texts(contexts: Candidate) -> bool:
    """Return whether contexts are one text for each record, and no lists."""
    return all(isinstance(value, str) and fields.embedded(value) is value for value in contexts.values.values())
