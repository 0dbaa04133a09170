"""Why a judged answer has no score for a quantity."""

from __future__ import annotations

from ragwatch.model.enumerations import Described


class UnknownReason(Described):
    """Why a judged sample has no score for a quantity. The values are labels of series."""

    NO_CLAIMS = ("no_claims", "the answers contain no claims")
    NO_CONTEXTS = ("no_contexts", "no contexts were retrieved")
    ABSTAINED = ("abstained", "the answers abstain")
    NOT_READ = ("not_read", "this judge does not score it")
    LANGUAGE = ("language", "this judge does not read the language of the answers, or it is not that of their contexts")
    SHORT_ANSWER = ("short_answer", "the answers are a bare yes or no, which this judge cannot decide")
    NO_CITATIONS = ("no_citations", "the answers cite no contexts")
    DOES_NOT_APPLY = ("does_not_apply", "the criterion does not apply to the answers")
