"""Tells from the values of samples whether their records were read wrongly: the checks behind every proposal."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os.path import commonprefix

from ragwatch.formats import fields, names
from ragwatch.formats.fields import EARLIEST, LATEST
from ragwatch.formats.split import before_question
from ragwatch.model.sample import Sample, SuspectReason

MISREAD = "a sample was probably read wrongly"
CHECK_ADVICE = "run `ragwatch check`, which shows how records are read, and correct the source"
TIMEZONE_ADVICE = (
    "if they are local times without an offset, which are read as UTC, set timezone: Europe/Berlin or the like"
)
HOUR = 3600.0
MAX_ZONE_HOURS = 14
MIN_DISTINCT = 3
"""Different samples from which on it counts that a value is the same in all."""
_MOST, _HALF, _MANY, _FEW = 0.8, 0.5, 0.25, 0.1  # shares of the samples
_NEAR = 8  # samples before one among which is another attempt at the same question
_MAX_ID_CHARS = 80
_MAX_TITLE_WORDS = 10
_MAX_EXAMPLE_CHARS = 60
_CUT_CHARS = range(40, 400)  # lengths of a preview
_MIN_CUT_TEXTS = 5
MIN_STATUS_SAMPLES = 6
MAX_STATUSES = 3
_MIN_PASSAGE_CHARS = 15
_FILE = re.compile(
    r"[^\n]{0,200}\.(?:pdf|txt|md|rst|docx?|html?|csv|tsv|jsonl?|xlsx?|pptx?|xml|ya?ml|py)(?:\W{0,3}\S{0,12})?"
)
_LINK = re.compile(r"[a-z][a-z0-9+.-]{1,12}://\S+|(?:[\w.~-]*/){2,}[\w.~-]*", re.IGNORECASE)
NO_WORDS = re.compile(r"[0-9a-f-]{16,}|[\d\W_]+|[a-z][a-z0-9+.-]{1,12}://\S+", re.IGNORECASE)
_SENTENCE = re.compile(r"[.!?:;\u2e80-\uffff]")
_MIN_QUESTION_CHARS = 15  # a passage may contain a shorter question by coincidence
_LONG_CHARS = 200
_MIN_TEMPLATE_CHARS = 60
_START_CHARS = 60
_MIN_SHIFTED, _MIN_SHIFTED_SECONDS = 10, 600.0  # samples in a row, and the time that they take to arrive
_DELAY = (-10.0, 120.0)  # seconds from the answer until its record is read, of a source that is not behind
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)
_PRINTED_OBJECTS = re.compile(r"\[\s*(?:\{'|[A-Za-z_.]+\(|<).*\]", re.DOTALL)  # a list of objects, as Python prints it
_CLOSING_TAG = re.compile(r"</[a-z][\w-]{0,40}>", re.IGNORECASE)
_INSTRUCTION = re.compile(
    r"\byou are an? (?:\w+[ -]){0,4}(?:assistant|chatbot|bot|expert|agent|ai)\b"
    r"|\b(?:answer|respond to|reply to) (?:the |this )?(?:user|customer|question|query|following)\b"
    r"|\b(?:use|using|based on) (?:only )?the (?:following|provided|given|above|retrieved)\b"
    r"|\b(?:only|solely) (?:use|answer|on) .{0,40}\b(?:context|documents|passages|sources)\b"
    r"|\bif you (?:do not|don['’]t) know\b|\bdo not make (?:anything |things )?up\b|^system:"
    r"|\breply with an answer\b|\bnot (?:use )?(?:your )?prior knowledge\b"
    r"|\byou (?:will be|are) (?:given|provided with) "
    r"|\b(?:answer|respond|reply)\b[^.\n]{0,60} (?:using|based|from|with) (?:only |solely )?(?:on )?the (?:\w+ )?"
    r"(?:context|documents|passages|sources|facts|articles|information|data)\b",
    re.IGNORECASE | re.MULTILINE,
)


def _is_id(text: str) -> bool:
    """Whether a text is an id rather than a passage: one short ASCII word."""
    return len(text) <= _MAX_ID_CHARS and text.isascii() and len(text.split()) == 1


def is_name(text: str) -> bool:
    """Return whether a text names a passage instead of being one: an id, a file, a link or a title."""
    text = text.strip()
    if _is_id(text) or _FILE.fullmatch(text) or _LINK.fullmatch(text):
        return True
    return len(text.split()) <= _MAX_TITLE_WORDS and not _SENTENCE.search(text)


def is_prompt(text: str) -> bool:
    """Return whether a text that should be a question is a prompt: it labels the question, or instructs a model."""
    return ("\n" in text and bool(before_question(text, None))) or (
        len(text) > _LONG_CHARS and _INSTRUCTION.search(text) is not None
    )


def has_prompt(sample: Sample) -> bool:
    """Return whether a context of a sample looks like a whole prompt."""
    question = " ".join((sample.question or "").casefold().split())
    for context in sample.contexts:
        text = " ".join(context.text.casefold().split())
        if len(question) >= _MIN_QUESTION_CHARS and question in text:
            return True
        if len(sample.contexts) == 1 and _INSTRUCTION.search(context.text):
            return True
    return False


def suspicions(samples: Sequence[Sample]) -> list[str]:
    """Return why samples of one log were probably read wrongly, with an example, for people. Equal ones count once."""
    distinct = {(one.question, _texts(one), one.answer): one for one in samples}
    checks = (_contexts, _question, _answer, _attempts, _id_and_time)
    return [suspicion for check in checks for suspicion in check(list(distinct.values()))]


def _texts(sample: Sample) -> tuple[str, ...]:
    return tuple(context.text for context in sample.contexts)


def example(value: object) -> str:
    """Return the beginning of a value, in quotes, on one line."""
    text = " ".join(str(value).split())
    return f'"{text}"' if len(text) <= _MAX_EXAMPLE_CHARS else f'"{text[: _MAX_EXAMPLE_CHARS - 3]}..."'


def contexts_are_names(sample: Sample) -> bool:
    """Return whether all contexts of a sample are names of passages."""
    texts = [text for text in _texts(sample) if text.strip()]
    return bool(texts) and all(map(is_name, texts))


def doubts(sample: Sample) -> Iterator[SuspectReason]:
    """Yield why one sample was probably read wrongly: what shows without the others of its log."""
    if contexts_are_names(sample):
        yield SuspectReason.CONTEXT_NAMES
    elif has_prompt(sample):
        yield SuspectReason.CONTEXT_PROMPT
    if sample.question is not None and is_prompt(sample.question):
        yield SuspectReason.QUESTION_PROMPT


class Doubts:
    """Why samples of one source were probably read wrongly: what shows in each, and whether its times look shifted.

    Times look shifted if the records of ten minutes are all late by the same number of half hours and a short delay.
    Records that are read late, as after an outage, are late by different times.
    """

    def __init__(self) -> None:
        self._half_hours = self._number = 0
        self._since = 0.0

    def about(self, sample: Sample, now: float) -> Mapping[SuspectReason, str]:
        """Return what is suspected of a sample that is read now, with what to do about it."""
        advice = dict.fromkeys(doubts(sample), CHECK_ADVICE)
        if sample.at is not None and self._are_shifted(now - sample.at, now):
            late = f"records are always {self._half_hours / 2:g} h late"
            advice[SuspectReason.TIMES_SHIFTED] = f"{late}; {TIMEZONE_ADVICE}"
        return advice

    def _are_shifted(self, late: float, now: float) -> bool:
        half_hours = round((late - sum(_DELAY) / 2) / HOUR * 2)
        is_shifted = 0 < half_hours <= 2 * MAX_ZONE_HOURS
        is_shifted = is_shifted and _DELAY[0] <= late - half_hours * HOUR / 2 <= _DELAY[1]
        if not is_shifted or half_hours != self._half_hours:
            self._half_hours, self._number, self._since = half_hours, 0, now
        self._number += is_shifted
        return self._number >= _MIN_SHIFTED and now - self._since >= _MIN_SHIFTED_SECONDS


def _contexts(samples: Sequence[Sample]) -> Iterator[str]:
    filled = [one for one in samples if any(map(str.strip, _texts(one)))]
    if not filled:
        if _differ(samples):
            yield "no record holds a context: nothing was retrieved, or it is not read"
        return
    first, texts = filled[0].contexts[0].text, [text for one in filled for text in _texts(one)]
    if sum(map(contexts_are_names, filled)) >= _MOST * len(filled):
        yield (
            f"contexts hold names of documents (ids, files, links or titles) instead of texts, such as {example(first)}"
            "; log the text of each passage that the retriever returned"
        )
    elif _differ(filled) and len(set(map(_texts, filled))) == 1:
        yield f"contexts are the same in every record: {example(first)}"
    elif sum(map(has_prompt, filled)) > _HALF * len(filled) or _begin_alike(
        [one.contexts[0].text for one in filled if len(one.contexts) == 1]
    ):
        yield (
            "a context looks like a whole prompt (it contains the question, or instructions to a model), and all of it"
            " would count as support; cut the passages out with `split` (`ragwatch init --print FILE` proposes how), or"
            f" log them as a list: {example(first)}"
        )
    elif sum(_PRINTED_OBJECTS.fullmatch(one.contexts[0].text.strip()) is not None for one in filled) > _HALF * len(
        filled
    ):
        yield f"contexts are a list as Python prints it; log it as JSON (json.dumps): {example(first)}"
    elif len(filled) >= MIN_DISTINCT and sum(map(_are_fragments, filled)) >= _MOST * len(filled):
        yield f"contexts are parts of the answer, such as {example(first)}"
    if (length := _cut_length(list(dict.fromkeys(texts)))) is not None:
        cut = next(text for text in texts if len(text) == length)
        yield (
            f"contexts are cut to {length} characters, such as the one that ends with {example(cut[-30:])}: what was"
            " cut off counts as unsupported; log whole texts"
        )


def _begin_alike(texts: Sequence[str]) -> bool:
    """Whether different texts begin with the same lines, as prompts of one template do."""
    return len({*texts}) >= MIN_DISTINCT and common_start(texts).rfind("\n") >= _MIN_TEMPLATE_CHARS


def common_start(texts: Sequence[str]) -> str:
    """Return the text that all begin with; empty if they are all the same."""
    return commonprefix(texts) if len({*texts}) > 1 else ""  # noqa: RUF071 - of characters, not of paths


def _are_fragments(sample: Sample) -> bool:
    return all(context.text.strip() in sample.answer for context in sample.contexts)


def _cut_length(texts: Sequence[str]) -> int | None:
    """The one length that most texts have in the middle of a sentence; None if there is none."""
    if len(texts) < _MIN_CUT_TEXTS:
        return None
    length, times = Counter(map(len, texts)).most_common(1)[0]
    ends = [text.rstrip() for text in texts if len(text) == length]
    open_ended = [end for end in ends if end.endswith(("...", "…")) or end[-1:] not in ('.!?"')]
    return length if length in _CUT_CHARS and times > _HALF * len(texts) and len(open_ended) > _HALF * times else None


def _question(samples: Sequence[Sample]) -> Iterator[str]:
    asked = [(one, one.question) for one in samples if one.question]
    if not asked:
        return
    texts, shown = [text for _, text in asked], example(asked[0][1])
    if sum(_is_prompt(text, one) for one, text in asked) > _HALF * len(asked) or _begin_alike(texts):
        yield f"the question is a whole prompt, with passages or instructions: {shown}"
    elif sum(NO_WORDS.fullmatch(text.strip()) is not None for text in texts) > _HALF * len(asked):
        yield f"the question is an id, a number or a link: {shown}"
    elif _differ([one for one, _ in asked]) and len(set(texts)) == 1:
        yield f"the question is the same in every record: {shown}"


def _is_prompt(question: str, sample: Sample) -> bool:
    starts = [context.text[:_START_CHARS] for context in sample.contexts if len(context.text) >= _MIN_PASSAGE_CHARS]
    holds_tags = _CLOSING_TAG.search(question) is not None
    return holds_tags or is_prompt(question) or any(start in question for start in starts)


def _answer(samples: Sequence[Sample]) -> Iterator[str]:
    said = [one for one in samples if one.answer.strip()]
    if len(samples) >= MIN_DISTINCT and len(said) < _HALF * len(samples):
        yield f"the answer is empty in {len(samples) - len(said)} of {len(samples)} records"
    if len(said) < MIN_DISTINCT:
        return
    shown, different = example(said[0].answer), {one.answer for one in said}
    words = all(_is_id(one.answer.strip()) for one in said)
    if sum(one.answer == one.question for one in said) > _HALF * len(said):
        yield f"the answer is the question: {shown}"
    elif len(different) == 1 and len({one.question for one in said}) >= MIN_DISTINCT:
        yield f"the answer is the same in every record: {shown}"
    elif words and len(different) <= MAX_STATUSES and len(said) >= MIN_STATUS_SAMPLES:
        yield f"the answer is one of a few words, like a status: {shown}"
    elif (inner := [one.answer for one in said if _answer_in(one.answer)]) and len(inner) > _HALF * len(said):
        yield (
            f"the answer is JSON, in which {_answer_in(inner[0])} is the answer: map it (from_json), or log it alone:"
            f" {example(inner[0])}"
        )
    if all(one.answer.rstrip().endswith("?") and (one.question or "?").rstrip()[-1:] != "?" for one in said):
        yield f"every answer asks and no question does, as if one were the other: {shown}"


def _answer_in(text: str) -> str | None:
    """The key of the answer in a JSON object that was logged as text, or in a fenced block; None without one."""
    fenced = _FENCED.fullmatch(text.strip())
    value = fields.embedded(fenced[1] if fenced else text)
    return names.best("answer", (key for key, held in value.items() if held)) if isinstance(value, dict) else None


def _attempts(samples: Sequence[Sample]) -> Iterator[str]:
    """Whether many samples stand shortly behind one with the same question and contexts, and another answer."""
    asked = [(one.question, _texts(one)) for one in samples]
    near = (asked[max(0, place - _NEAR) : place] for place in range(len(asked)))
    again = [one for one, key, some in zip(samples, asked, near, strict=True) if one.contexts and key in some]
    if len({*asked}) >= MIN_DISTINCT and len(again) >= max(MIN_DISTINCT, _MANY * len(samples)):
        yield (
            f"{len(again)} of {len(samples)} answers follow another one to the same question from the same contexts, as"
            f" pieces or attempts do; select those that users got with where: {example(again[0].answer)}"
        )


def _id_and_time(samples: Sequence[Sample]) -> Iterator[str]:
    times = Counter(one.id for one in samples)
    name, most = max(times.items(), key=lambda one: one[1], default=("", 0))
    if len(samples) - len(times) > _FEW * len(samples) and most > 1:
        yield f"{most} different answers have the id {example(name)}; all but one would be rejected"
    odd = [one.at for one in samples if one.at is not None and not EARLIEST <= one.at <= LATEST]
    if len(odd) > _FEW * len(samples):
        yield f"the time is before 2000 or after 2100, such as {odd[0]:g} s since 1970"


def _differ(samples: Sequence[Sample]) -> bool:
    """Whether enough different answers are there to expect different questions and contexts."""
    return len({one.answer for one in samples}) >= MIN_DISTINCT
