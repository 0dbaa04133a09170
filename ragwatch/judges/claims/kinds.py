"""Tells sentences that are no claims about the subject: courtesy, offers, lead-ins, advice, disclaimers, questions.

A fitted classifier (`training/kinds.py`, `training/KINDS.md`) reads sentences of at most `MAX_WORDS` words; questions
are known by their mark. The classifier prefers a claim in doubt: what an answer invents must not pass for courtesy.
"""

import re
from functools import lru_cache

from ragwatch.judges.text_classifier import shipped_classifier, shipped_classifiers, words_of
from ragwatch.statistics.text.phrases import abstains, advises, is_meta

MAX_WORDS = 30
"""A longer sentence states something."""

_END = re.compile(r"""[?!:,][\s"'”’»)\]*_`]{0,6}$""")
_QUESTION = re.compile(r"""[?？][!?]{0,3}[\s"'”’»)\]*_`]{0,6}$""")
_STATES = re.compile(
    r"\W*(?:did you know|(?:is|are|was|were|do|does|did|has|have|can|could|would|will)n['’]t\b"
    r"|(?:who|you) (?:would have )?(?:thought|knew|guessed)|wusste(?:n sie|st du|t ihr),? dass"
    r"|sav(?:iez-vous|ais-tu) que"
    r"|(?:lo )?sapev(?:i|a|ate)(?: già)? che|wist (?:u|je) dat|(?:(?:você|tu) )?sab(?:ías?|ia|ias) (?:usted )?que)"
    r"|[,;] ¿?(?:right|correct|no|yes|nicht wahr|oder|n['’]est-ce pas|verdad|vero|toch|né|não é"
    r"|(?:is|are|was|were|do|does|did|has|have|can|could|would|will)n['’]t (?:it|they|he|she|you))\s?\?",
    re.IGNORECASE,
)
"""Questions that state what they ask ("Did you know that ...?", "It lasts two years, doesn't it?")."""


_TELLS = re.compile(
    r"\b(?:say|tell|inform|confirm|know|hear|add|mention|note|assure|remind|report|see|found)"
    r" (?:you |us |everyone )?that\b|[:–—]\W{0,3}\w+\W{1,3}\w+|(?<!: )\b\d{1,9}\s?[%€$£]|[€$£]\s?\d"
    r"|\b(?:within|after|for|until|by|every|per) (?:\w+ ){0,2}(?:second|minute|hour|day|week|month|year)s?\b"
    r"|(?-i:[^\W\d_\x00-\xff\u0152\u0153])",
    re.IGNORECASE,
)
"""What states something, whatever stands before it ("I'm happy to say that ...", "Short answer: up to 20 kilos"), and
letters of languages that the classifier does not know."""


_ASKING = re.compile(
    r"(?:,| [-–—])\s+(?:(?:and|so|but|now)\s+)?(?:what|which|who|how|where|when|why|do|does|did|is|are|have|has|would"
    r"|could|can|shall|should|may|any)\b",
    re.IGNORECASE,
)
_PART = re.compile(
    r"[,;!] |\b(?:and|but|so|(?<!hope )that|und|aber|et|mais|y|pero|e|ma|mas|en|maar) (?=\w)", re.IGNORECASE
)
_MIN_PART = 3  # words
_LABEL = re.compile(
    r"\W{0,6}(?:(?:disclaimer|(?:please )?note|important|reminder|p\.?s\.?)\W{0,3}:"
    r"|(?:please )?(?:note|keep in mind) that)",
    re.IGNORECASE,
)


_OPENS = re.compile(  # "To point you in the right direction, could you ...?"
    r"\W*(?:(?:just|in order|so as) )?to (?!(?:date|day|him|her|them|me|us|this|that|the|an?|my|our|your|his|its|their"
    r"|some|many|most|all|these|those)\b)\w[^\d,;:]*$"
    r"|\W*(?:if|before (?:i|we)|so(?: that)? (?:i|we) can|for (?:me|us) to)\b[^,;:]*$",
    re.IGNORECASE,
)
"""A condition of a question, or its purpose without a number: it states nothing."""


def asks(sentence: str) -> bool:
    """Whether a sentence is a question to the user, or an offer in the form of one.

    >>> [asks(text) for text in ("Which one do you mean?", "Did you know that it lasts nine years?", "It lasts.")]
    [True, False, False]
    """
    return _QUESTION.search(sentence) is not None and _STATES.search(sentence) is None


def stated_before(question: str) -> int:
    """Number of characters of a question that state something before it is asked; 0 if it only asks.

    >>> text = "Bowling is an old sport, what do you like?"
    >>> text[:stated_before(text)], stated_before("Well, which one do you mean?")
    ('Bowling is an old sport', 0)
    >>> stated_before("To point you in the right direction, could you tell me the model?")
    0
    """
    asking = _ASKING.search(question)
    head = question[: asking.start()] if asking else ""
    states = len(words_of(head)) > _MIN_PART and not _OPENS.match(head) and not is_small_talk(head)
    return len(head) if states else 0


@lru_cache(maxsize=1 << 10)
def is_small_talk(sentence: str) -> bool:
    """Whether a sentence states nothing about the subject, in none of its parts.

    >>> [is_small_talk(text) for text in ("Sure, here is what I found for you.", "Sure, the warranty lasts two years.")]
    [True, False]
    """
    parts, classifier = parts_to_read(sentence), shipped_classifier("kinds")
    least = classifier.thresholds["least"]
    return bool(parts) and all(classifier.logit(read_words(part)) > least for part in parts)


def parts_to_read(sentence: str) -> list[str]:
    """The sentence and its parts, of which none may look like a claim; empty if its form says that it states something.

    >>> parts_to_read("Note: I am a bot, and I can get things wrong.")
    [' I am a bot, and I can get things wrong.', 'I can get things wrong.']
    """
    if len(sentence) > MAX_WORDS * 20:
        return []
    sentence = _LABEL.sub("", sentence, count=1)
    if _TELLS.search(sentence) or len(words_of(sentence)) > MAX_WORDS:
        return []
    return [sentence, *(part for part in _PART.split(sentence)[1:] if len(words_of(part)) >= _MIN_PART)]


def kind_of(sentence: str) -> str | None:
    """What a sentence is if it is no claim: a question, an abstention, courtesy, an offer, a lead-in, and so on.

    >>> [kind_of(text) for text in ("Which one?", "Sure, here is what I found for you.", "It lasts two years.")]
    ['question', 'lead-in', None]
    """
    if asks(sentence):
        return "question"
    if abstains(sentence):
        return "abstention"
    if advises(sentence):
        return "advice"
    if is_small_talk(sentence):
        words = read_words(sentence)
        logits = {kind: classifier.logit(words) for kind, classifier in shipped_classifiers("kind_names").items()}
        return max(logits, key=logits.__getitem__)
    return "meta" if is_meta(sentence) else None


def read_words(sentence: str) -> list[str]:
    """The words of a sentence between marks of its beginning and its end, as the classifier reads them."""
    end = _END.search(sentence)
    return ["<", *words_of(sentence), f"{end.group()[0]}>" if end else ">"]
