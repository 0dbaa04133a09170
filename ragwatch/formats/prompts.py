"""Recognises a text that is a whole prompt rather than a passage: it asks the question, or instructs a model."""

from __future__ import annotations

import re

from ragwatch.core.sample import Sample

_MIN_QUESTION_CHARS = 15  # a passage may contain a shorter question by coincidence
_INSTRUCTION = re.compile(
    r"\byou are an? (?:\w+[ -]){0,4}(?:assistant|chatbot|bot|expert|agent|ai)\b"
    r"|\b(?:answer|respond to|reply to) (?:the |this )?(?:user|customer|question|query|following)\b"
    r"|\b(?:use|using|based on) (?:only )?the (?:following|provided|given|above|retrieved)\b"
    r"|\b(?:only|solely) (?:use|answer|on) .{0,40}\b(?:context|documents|passages|sources)\b"
    r"|\bif you (?:do not|don['’]t) know\b|\bdo not make (?:anything |things )?up\b|^system:",
    re.IGNORECASE | re.MULTILINE,
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
