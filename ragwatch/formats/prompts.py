"""Recognises a text that is a whole prompt rather than a passage: it asks the question, or instructs a model."""

from __future__ import annotations

import re

from ragwatch.core.sample import Sample
from ragwatch.formats.split import before_question

_MIN_QUESTION_CHARS = 15  # a passage may contain a shorter question by coincidence
_LONG_CHARS = 200
_INSTRUCTION = re.compile(
    r"\byou are an? (?:\w+[ -]){0,4}(?:assistant|chatbot|bot|expert|agent|ai)\b"
    r"|\b(?:answer|respond to|reply to) (?:the |this )?(?:user|customer|question|query|following)\b"
    r"|\b(?:use|using|based on) (?:only )?the (?:following|provided|given|above|retrieved)\b"
    r"|\b(?:only|solely) (?:use|answer|on) .{0,40}\b(?:context|documents|passages|sources)\b"
    r"|\bif you (?:do not|don['’]t) know\b|\bdo not make (?:anything |things )?up\b|^system:",
    re.IGNORECASE | re.MULTILINE,
)


def instructs(text: str) -> bool:
    """Return whether a text contains an instruction to a model."""
    return _INSTRUCTION.search(text) is not None


def is_prompt(text: str) -> bool:
    """Return whether a text that should be a question is a prompt: it labels the question, or instructs a model."""
    return ("\n" in text and bool(before_question(text, None))) or (len(text) > _LONG_CHARS and instructs(text))


def has_prompt(sample: Sample) -> bool:
    """Return whether a context of a sample looks like a whole prompt."""
    question = " ".join((sample.question or "").casefold().split())
    for context in sample.contexts:
        text = " ".join(context.text.casefold().split())
        if len(question) >= _MIN_QUESTION_CHARS and question in text:
            return True
        if len(sample.contexts) == 1 and instructs(context.text):
            return True
    return False
