"""The names under which services log the parts of a sample, compared by token rather than letter by letter.

A name is cut into tokens (`userQuestion`, `user_question` and `user.question` are the same). It names a part if it ends
with one of the part's nouns, behind which only words without a meaning of their own may stand (`answer_text`), and if
none of its other tokens says that it is something else (`expected_answer`, `previous_question`).
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BREAK = re.compile(r"[\W_]+")
_PLURAL = re.compile(r"(?s)(?:(?<=...)(?<![su])|(?<=\Aid))s\Z")
_NEUTRAL = frozenset(
    {"text", "content", "value", "body", "message", "msg", "string", "str", "raw", "full", "data", "s"}
)
_FINAL = frozenset({"final", "used", "selected", "reranked", "fused", "merged", "accepted", "sent"})
_NOT_OURS = "expected reference gold golden ideal ground truth correct target example eval evaluation test template"
_OLD = "previous prev last next suggested suggestion follow followup related history"
_UNSEEN = "draft rejected discarded"
_UNUSED = f"{_UNSEEN} unused dropped excluded ignored suggested suggestion reasoning thought"
_ELSEWHERE = frozenset(f"{_NOT_OURS} {_OLD} {_UNSEEN} tool function feedback judge error".split())  # of whole objects
_ASKED = frozenset({"question", "query", "request", "input", "prompt", "user"})
_SHARED = frozenset({
    "user", "session", "conversation", "thread", "tenant", "customer", "client", "project", "model", "doc",
    "document", "chunk", "process", "worker", "chat", "host", "parent", "span", "file", "account", "organization",
    "org", "dataset", "app", "application", "device", "pod", "container", "collection", "index", "tool",
    "turn", "step", "sequence", "seq", "line", "row",
})  # fmt: skip
_REQUESTS = frozenset({"trace", "request", "req", "correlation", "transaction", "txn", "run"})


class _Names(NamedTuple):
    """The names of one part."""

    nouns: tuple[tuple[str, ...], ...]  # words, the most likely one first
    others: frozenset[str] = frozenset()  # tokens of a name that ends with a noun and means something else


def _names(nouns: str, *others: str) -> _Names:
    words = tuple(tuple(noun.split()) for noun in nouns.split(", "))
    return _Names(words, frozenset(" ".join(others).split()))


NAMES: Mapping[str, _Names] = MappingProxyType(
    {
        "question": _names(
            "question, user input, user message, user prompt, customer message, human message, query, prompt, input,"
            " utterance, ask, search, frage, pregunta, consulta, pergunta, domanda, q, request, user, human, message",
            _NOT_OURS,
            _OLD,
            "rewritten rewrite expanded standalone condensed hyde sub system default embedding sql db negative"
            " error assistant bot status output response answer",
        ),
        "answer": _names(
            "answer, response, reply, completion, output, generation, generated text, assistant message, bot message,"
            " ai message, result, generated, ans, assistant, bot, antwort, respuesta, réponse, reponse, resposta,"
            " risposta, text, content, message, a",
            _NOT_OURS,
            _OLD,
            "draft alternative rejected tool function http error default user customer human question query request"
            " input prompt judge feedback status system step",
        ),
        "contexts": _names(
            "context, ctx, chunk, passage, document, doc, snippet, excerpt, evidence, node, hit, match, retrieved,"
            " retrieval, fundstelle, fundstellen, kontext, fragmento, contexto, contexte, extrait, source, result,"
            " resource, article, knowledge, reference, citation, point, item",
            "expected gold golden ideal ground truth correct target example eval system conversation user session"
            " previous error trace request app history output",
            _UNUSED,
        ),
        "text": _names(
            "text, content, page content, txt, chunk, body, passage, snippet, excerpt, preview, document, context,"
            " inhalt, contenido, texto, texte, testo, conteúdo",
            "title name type question query summary",
        ),
        "context_id": _names(
            "id, uuid, chunk id, passage id, segment id, node id, point id, doc id, document id, file id, doc ref,"
            " document ref, key",
            "user session dataset collection index parent tenant type",
        ),
        "score": _names(
            "score, similarity, relevance, distance, sim, relevanz, puntuacion", "threshold min max top vector term"
        ),
        "id": _names(
            "id, request id, message id, response id, answer id, interaction id, query id, event id, uuid, run id,"
            " generation id, transaction id, trace id, guid",
            *_SHARED,
        ),
        "at": _names(
            "at, timestamp, ts, created at, created, time, timestamp ms, ts ms, time ms, epoch ms, ts us, timestamp us,"
            " ts ns, timestamp ns, time unix nano, datetime, date, asctime, epoch,"
            " unixtime, when, started at, start, start ms, start us, start ns, zeitstempel, fecha, horodatage",
            "end ended finish finished expire expires expiry updated update elapsed duration latency response last",
        ),
        "route": _names(
            "route, endpoint, pipeline, path, handler, operation, channel",
            "file document doc chunk tool log span folder static image",
        ),
        "trace_id": _names("trace id", "parent"),
        "relevant_ids": _names(
            "relevant id, relevant doc id, gold id, expected id, reference context id, relevant document id"
        ),
        "history": _names("history, conversation, message, turn", "choice output"),
        "reference": _names(
            "ground truth, expected answer, reference answer, gold answer, golden answer, ideal answer, reference",
            "id context url link",
        ),
    }
)
"""The one list of names, by part of a sample; those of a passage are `text`, `context_id` and `score`."""
WEAK: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "question": frozenset({"message", "input", "search", "ask", "request", "user", "human"}),
        "answer": frozenset({"text", "content", "message"}),
    }
)
"""Nouns that name a part only where no record has a better name for it."""
UNNAMED = 90.0
"""Rank of a name that is not one of a part."""


@lru_cache(maxsize=4096)
def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case and in the singular.

    >>> tokens("retrievedDocuments"), tokens("@timestamp"), tokens("LLM_response.text")
    (('retrieved', 'document'), ('timestamp',), ('llm', 'response', 'text'))
    """
    words = _BREAK.split(_HUMP.sub("_", name).lower())
    return tuple(_PLURAL.sub("", word) for word in words if word)


@lru_cache(maxsize=8192)
def rank(part: str, *path: str) -> float:
    """Return how likely the last name of a path is the name of a part, the lower the better; `UNNAMED` if it is not.

    The names before it are those of the objects around it: they count where the last one means nothing by itself, and
    where they say that it is something else.

    >>> rank("answer", "generatedAnswer") < rank("answer", "reply"), rank("answer", "expected_answer") == UNNAMED
    (True, True)
    >>> rank("answer", "reply", "text") == rank("answer", "reply"), rank("answer", "gold", "answer") == UNNAMED
    (True, True)
    """
    names, around = NAMES[part], [tokens(name) for name in path[:-1]]
    if not names.others.isdisjoint(_ELSEWHERE.intersection(word for words in around for word in words)):
        return UNNAMED
    words = tokens(path[-1])
    parent = around[-1] if around else ()
    if _NEUTRAL.issuperset(words) and parent and part != "text":
        return _noun(names, (*parent, *words)) if parent[-1] not in _ASKED or part == "question" else UNNAMED
    if words == ("id",) and not _SHARED.isdisjoint(parent[-1:]) and part == "id":
        return UNNAMED
    return _noun(names, words)


def _noun(names: _Names, words: tuple[str, ...]) -> float:
    """The rank of the noun that a name ends with, without words that mean nothing; less likely with others before."""
    neutral = next((count for count, word in enumerate(reversed(words)) if word not in _NEUTRAL), len(words))
    ends = range(len(words) - neutral, len(words) + 1)
    matching = [
        (end, place) for end in ends for place, noun in enumerate(names.nouns) if words[:end][-len(noun) :] == noun
    ]
    if not matching:
        return UNNAMED
    end, place = max(matching, key=lambda one: (len(names.nouns[one[1]]), -one[0]))
    noun, before = names.nouns[place], words[: end - len(names.nouns[place])]
    if len(noun) == 1 and (not names.others.isdisjoint(before) or (before and len(noun[0]) == 1)):
        return UNNAMED  # `answer_a` is one of several
    return place + (-0.4 if _FINAL.intersection(before) else 0.4 if before else 0)


def is_unused(path: Iterable[str]) -> bool:
    """Return whether any name of a path says that passages were not used, or that they are none."""
    return any(word in _UNUSED.split() for name in path for word in tokens(name))


def says_little(part: str, position: float) -> bool:
    """Return whether a rank is that of no noun, or of one that names the part only where there is no better one."""
    return position == UNNAMED or " ".join(NAMES[part].nouns[round(position)]) in WEAK.get(part, ())


def best(part: str, names: Iterable[str]) -> str | None:
    """Return the most likely name of a part among some; None if none is."""
    likely = min(names, key=lambda name: rank(part, name), default=None)
    return None if likely is None or rank(part, likely) == UNNAMED else likely


def place(part: str, noun: str) -> int:
    """Return the rank of a noun of a part."""
    return NAMES[part].nouns.index((*noun.split(),))


def is_request_id(name: str) -> bool:
    """Return whether a name is that of an id that the records of one request share, and no others."""
    words = tokens(name)
    if words[-1:] not in (("id",), ("uuid",)):
        return len(words) == 1 and words[0] in _REQUESTS
    return _SHARED.isdisjoint(words)
