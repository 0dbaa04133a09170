"""Proposes options of a source, from what repeats over its records.

`where` tells the answers in a mixed log from its other records, `split` cuts the passages out of prompts.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from ragwatch.formats import CUSTOM, FORMATS, names
from ragwatch.formats.custom import MappingReader
from ragwatch.formats.expressions import predicate
from ragwatch.formats.guessing.guess import FormatGuess, problems_of, propose, read_all
from ragwatch.formats.guessing.log_fields import log_fields
from ragwatch.formats.guessing.suspicion import common_start, is_name
from ragwatch.formats.record import Record
from ragwatch.formats.split import Splitter, before_question
from ragwatch.model.sample import Sample

EVERY_OBJECT = "@"
_NAMES = (
    *("event", "type", "kind", "status", "status_code", "message", "msg", "action", "name", "logger", "path", "method"),
    *("component", "operation", "level", "severity"),
)
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_PLAIN = re.compile(r"[^'\\`\x00-\x1f]{1,60}")
_MAX_DEPTH = 3
_MAX_TERMS = 3
_MIN_RECORDS = 5  # with fewer, a field of any name may be constant by coincidence
_Scalar = str | int | bool


def propose_where(answers: Sequence[Record], others: Sequence[Record], texts: int = 0) -> str | None:
    """Return a condition that is true for all answers, and false for as many of the other records as possible.

    None if nothing tells them apart; `@`, which every object fulfils, if there are only `texts`, lines without a JSON
    object, beside the answers.
    """
    if not answers or not (others or texts):
        return None
    if not others:
        return EVERY_OBJECT
    every = _constants(answers)
    words = {path: value for path, value in every.items() if isinstance(value, str)}
    terms = _selective(_telling(every), others) or _selective(words, others) or _presence(answers, others)
    where = " && ".join(terms)
    return where if where and all(map(predicate("where", where), answers)) else None


def _telling(constants: Mapping[str, _Scalar]) -> dict[str, _Scalar]:
    return {path: value for path, value in constants.items() if _rank(path)[0] < len(_NAMES)}


def _selective(constants: Mapping[str, _Scalar], others: Sequence[Record]) -> list[str]:
    """Comparisons with constants, each with the one that fewest of the remaining records fulfil."""
    values = {field.path: field.values for field in log_fields(others)}
    terms: list[str] = []
    left = list(range(len(others)))
    while left and len(terms) < _MAX_TERMS:
        ranked = [
            (sum(_same(values.get(path, {}).get(place), value) for place in left), _rank(path), path)
            for path, value in constants.items()
        ]
        if not ranked or min(ranked)[0] == len(left):
            break
        path = min(ranked)[2]
        value = constants[path]
        terms.append(f"{path} == '{value}'" if isinstance(value, str) else f"{path} == `{str(value).lower()}`")
        left = [place for place in left if _same(values.get(path, {}).get(place), value)]
    return terms


def _constants(answers: Sequence[Record]) -> dict[str, _Scalar]:
    """Short texts, whole numbers and booleans that are the same in all answers, by path; only telling ones of few."""
    constants: dict[str, _Scalar] = {}
    for field in log_fields(answers):
        value = field.values.get(0)
        if len(field.names) > _MAX_DEPTH or not _PATH.fullmatch(field.path) or not isinstance(value, (str, int)):
            continue
        is_constant = all(_same(field.values.get(place), value) for place in range(len(answers)))
        if is_constant and (isinstance(value, int) or _may_tell_kinds(field.names[-1], value)):
            constants[field.path] = value
    return constants if len(answers) >= _MIN_RECORDS else _telling(constants)


def _presence(answers: Sequence[Record], others: Sequence[Record]) -> list[str]:
    """The condition that a field is there, which all answers have and no other record has.

    A record with most fields of an answer is an answer that lacks something: it has to be rejected, not skipped.
    """
    keys = answers[0].keys()
    others = [record for record in others if 2 * len(record.keys() & keys) < len(keys)]
    if not others:
        return []
    for name in answers[0]:
        is_shared = all(record.get(name) is not None for record in answers)
        if is_shared and "." not in name and _PATH.fullmatch(name) and all(name not in one for one in others):
            return [f"{name} != `null`"]
    return []


def _may_tell_kinds(name: str, text: str) -> bool:
    """Whether a text is a word, or a telling field: two answers may be the same sentence by coincidence."""
    if name in _NAMES or not _PLAIN.fullmatch(text):
        return _PLAIN.fullmatch(text) is not None
    is_text = any(names.rank(part, name) < names.UNNAMED for part in ("question", "answer"))
    return not is_text and not any(map(str.isspace, text))


def _same(value: object, other: _Scalar) -> bool:
    return type(value) is type(other) and value == other


def _rank(path: str) -> tuple[int, int]:
    """How likely the field tells kinds of records apart: the lower the better."""
    name = path.rpartition(".")[2]
    return (_NAMES.index(name) if name in _NAMES else len(_NAMES), path.count("."))


_KINDS = ("xml", "numbered", "headings", "markdown", "paragraphs", "lines", "whole")
_DELIMITED = frozenset({"xml", "numbered", "headings"})  # kinds that leave out what stands before the first passage
_MARKED = frozenset({"paragraphs", "lines", "whole"})  # kinds that only make sense between two marks
_MIN_SHARE = 0.9  # of the texts that a proposal has to cut
_MIN_PASSAGES = 1.5  # mean over the texts
_MAX_NAMES = 0.2  # share of the passages that may be names
_MIN_MARK_CHARS = 4
_MAX_MARK_CHARS = 100
_MAX_MARKS = 3
_MIN_LINE_CHARS = 20  # mean length of lines that are passages
_MAX_LINES = 10  # different numbers of lines
_MIN_PROMPT_CHARS = 60
_ROLES = ("system", "developer", "user", "tool")


class Prompt(NamedTuple):
    """A text that may contain passages, and the question if it is known."""

    text: str
    question: str | None = None


def prompts_of(samples: Sequence[Sample]) -> list[Prompt]:
    """The contexts of samples that have a single one. A question that contains the prompt is unknown."""
    return [
        Prompt(text, None if sample.question is None or text in sample.question else sample.question)
        for sample in samples
        if len(sample.contexts) == 1
        for text in (sample.contexts[0].text,)
    ]


def guess_prompt(records: Sequence[Record]) -> FormatGuess | None:
    """Return a mapping for records whose contexts stand in a prompt; None if no text of them can be cut.

    The first text is taken that can be cut and of whose passages nothing is suspected.
    """
    proposed = propose(records)
    mapping = {**proposed.mapping}
    if "answer" not in mapping:
        if not any(map(FORMATS["openai"].matches, records)):
            return None
        mapping["answer"] = FORMATS["openai"].MAPPING["answer"]
    mapping.pop("history", None)  # it holds the prompts
    guesses = (
        _cut_out(records, _asked(expression) | mapping | {"contexts": expression})
        for expression in prompt_texts(records)
        if expression != mapping["answer"]
    )
    return min((one for one in guesses if one is not None), key=lambda one: len(one.problems), default=None)


def _asked(prompt: str) -> dict[str, str]:
    """The question of a conversation whose passages stand in a message of another role than the user's."""
    messages, role, rest = prompt.partition("[?role=='")
    return {"question": f"{messages}{role}user'].content | [-1]"} if role and not rest.startswith("user'") else {}


def _cut_out(records: Sequence[Record], mapping: Mapping[str, str]) -> FormatGuess | None:
    """What a mapping reads whose contexts are a prompt; None if no passages can be cut out of the prompt."""
    samples = read_all(MappingReader(mapping), records)[0]
    prompts = prompts_of(samples)
    splitter = propose_split(prompts)
    if splitter is None:
        return None
    if all(prompt.question is None for prompt in prompts):
        mapping = {key: expression for key, expression in mapping.items() if key != "question"}
        samples = [sample._replace(question=None) for sample in samples]
    share = len(samples) / len(records)
    return FormatGuess(CUSTOM, share, (), mapping, problems_of(samples, splitter), split=splitter)


def propose_split(prompts: Sequence[Prompt]) -> Splitter | None:
    """Return how to cut the passages out of most of the prompts; None if no kind does.

    `after` and `before` are proposed only where the cut depends on them, and `before` where the question is known only
    from the prompt.
    """
    if not prompts:
        return None
    after_marks, before_marks = _marks_after([prompt.text for prompt in prompts]), _marks_before(prompts)
    apart = all(prompt.question is not None and prompt.question not in prompt.text for prompt in prompts)
    for kind in _KINDS:
        starts = ["", *after_marks] if kind in _DELIMITED else after_marks if kind in _MARKED else [*after_marks, ""]
        for after, before in product(starts, before_marks if kind in _MARKED and not apart else [*before_marks, ""]):
            marked = Splitter(kind, after, before)
            cuts = _cuts(marked, prompts)
            if cuts is None:
                continue
            if any(prompt.question is None for prompt in prompts):
                return marked
            bare = Splitter(kind)
            return bare if kind not in _MARKED and _cuts(bare, prompts) == cuts else marked
    return None


def _cuts(splitter: Splitter, prompts: Sequence[Prompt]) -> list[list[str] | None] | None:
    """The passages of each prompt; None if too few are cut."""
    cuts = [splitter.passages(prompt.text, prompt.question) for prompt in prompts]
    cut = [passages for passages in cuts if passages]
    if sum(passages is not None for passages in cuts) < _MIN_SHARE * len(cuts) or not cut:
        return None
    mean = sum(map(len, cut)) / len(cut)
    chars = sum(len(passage) for passages in cut for passage in passages) / (mean * len(cut))
    if mean < (1.0 if splitter.kind == "whole" else _MIN_PASSAGES):
        return None
    if splitter.kind == "lines" and (chars < _MIN_LINE_CHARS or len({*map(len, cut)}) > _MAX_LINES):
        return None
    repeated = len({passages[0] for passages in cut}) == 1 or len({passages[-1] for passages in cut}) == 1
    pieces = [piece for passages in cut for piece in passages]
    if sum(map(is_name, pieces)) > _MAX_NAMES * len(pieces):  # lines above the passages, such as their files
        return None
    if repeated and len({prompt.text for prompt in prompts}) > 1:  # an instruction that every prompt repeats
        return None
    return cuts


def _marks_after(texts: Sequence[str]) -> list[str]:
    """Lines that all prompts begin with, the last one first.

    The last one may be the mark of the first passage itself, behind which too few passages would remain.
    """
    common = common_start(texts)
    lines = common[: common.rfind("\n") + 1].splitlines()
    marks = [mark for line in reversed(lines) if len(mark := _end_of(line.strip())) >= _MIN_MARK_CHARS]
    return [mark for mark in marks[:_MAX_MARKS] if all(text.count(mark, 0, len(common)) == 1 for text in texts)]


def _marks_before(prompts: Sequence[Prompt]) -> list[str]:
    """Lines between the passages and the question that all prompts have, the first one first."""
    heads = [before_question(prompt.text, prompt.question) for prompt in prompts]
    if not all(heads):
        endings = [prompt.text.rstrip().rpartition("\n")[2] for prompt in prompts]
        start = common_start(endings).rpartition(" ")[0]
        start = start[: start.rfind(":") + 1] or start
        return [start] if _MIN_MARK_CHARS <= len(start) <= _MAX_MARK_CHARS else []
    common = common_start([head[::-1] for head in heads])[::-1]
    lines = common[common.find("\n") + 1 :].splitlines()
    marks = [mark for line in lines if _MIN_MARK_CHARS <= len(mark := line.strip()) <= _MAX_MARK_CHARS]
    return list(dict.fromkeys((*marks[:_MAX_MARKS], *marks[-1:])))


def _end_of(line: str) -> str:
    return line if len(line) <= _MAX_MARK_CHARS else line[-_MAX_MARK_CHARS:].partition(" ")[2]


def prompt_texts(records: Sequence[Record]) -> Iterator[str]:
    """Yield the JMESPath expressions of the texts that may be prompts, those of most records first."""
    times: Counter[str] = Counter()
    for field in log_fields(records):
        if field.in_list:
            continue
        for value in field.values.values():
            if isinstance(value, str) and len(value) >= _MIN_PROMPT_CHARS:
                times[field.path] += 1
            elif isinstance(value, list):
                times.update(f"{field.path}[?role=='{role}'].content | [-1]" for role in _roles(value))
    yield from (expression for expression, _ in times.most_common())


def _roles(items: Sequence[object]) -> Iterator[str]:
    last: dict[str, str] = {}
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("role"), str) and isinstance(item.get("content"), str):
            last[item["role"]] = item["content"]
    yield from (role for role in _ROLES if len(last.get(role, "")) >= _MIN_PROMPT_CHARS)
