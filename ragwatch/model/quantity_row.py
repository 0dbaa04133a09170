"""What a row of the table of quantities holds, and why a score is unknown."""

from dataclasses import dataclass
from enum import StrEnum

from ragwatch.model.enumerations import Described
from ragwatch.model.stages import Stage


class Better(StrEnum):
    """Which values of a quantity are good. The threshold of one that is better when low is an upper limit."""

    HIGH = "high"
    LOW = "low"
    NEITHER = "neither"


class Part(StrEnum):
    """A part of a reading, which an LLM is asked for. The values are keys of its reply."""

    CLAIMS = "claims"
    CONTEXTS = "contexts"
    NEEDS = "needs"
    ADDRESS = "address"
    REFERENCE = "reference"
    CRITERIA = "criteria"


class Need(StrEnum):
    """What an answer or a reading must have for a score, in the order in which a lack is reported."""

    LANGUAGE = "language"
    CONTRADICTION = "contradiction"
    CLAIMS_READ = "claims_read"
    AN_ANSWER = "an_answer"
    CLAIMS = "claims"
    CITATIONS = "citations"
    CONTEXTS = "contexts"


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


class GateSeverity(StrEnum):
    """Effect of a failing metric on a release."""

    BLOCK = "block"
    WARN = "warn"


class Board(StrEnum):
    """Dashboards on which quantities are shown over time."""

    GENERATION = "generation"
    RETRIEVAL = "retrieval"


class Explanation(StrEnum):
    """What a score rests on, as it is written beside the score in exported traces."""

    UNSUPPORTED_CLAIMS = "unsupported_claims"
    CONTRADICTED_CLAIMS = "contradicted_claims"
    MISSING_INFORMATION = "missing_information"
    RELEVANT_CONTEXTS = "relevant_contexts"
    ADDRESS = "address"
    QUOTE = "quote"


class Reply(StrEnum):
    """The form of a person's reply to the question of a quantity."""

    DEGREE = "degree"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class LabelQuestionRow:
    """What people are asked about an answer."""

    text: str  # the question
    reply: Reply  # the form of the reply
    yes: float = 1.0  # score of the reply "yes"
    unless_claims: bool = False  # whether it is asked only where claims are not asked about one by one
    about_contexts: bool = False  # whether it is asked only where something was retrieved


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityRow:
    """All that depends on the quantity alone. What has no default must be thought about; the rest is off."""

    name: str  # its name in series, verdict lines, keys, SQL and the API
    meaning: str  # what it measures, for HELP, dashboards and documentation
    formula: str  # how it is computed, for the documentation
    better: Better  # which values are good
    stage: Stage  # the stage at fault if it is bad and nothing else is known
    parts: frozenset[Part]  # what an LLM is asked for
    needs: frozenset[Need]  # what must be there for a score; a lack is the reason why the score is unknown
    unread_by: frozenset[str]  # kinds of judges that never score it
    binary: bool = False  # whether the score of one answer is 0 or 1 alone, so that false alarms and misses are rates
    threshold: float | None = None  # default threshold of live traffic; None for none
    severity: GateSeverity | None = None  # of a failure in `ragwatch gate`; None for no default threshold
    drift: bool = False  # whether it is watched for drift by default
    tolerance: float | None = None  # smallest change that drift tells; None for `drift.tolerance`
    own_alert: bool = False  # whether alerts of its own name its faults, and those of all others leave it out
    listed: bool = False  # whether the list of answers has a column for it
    headline: int | None = None  # its place at the top of the overview dashboard; None where it is not there
    board: Board | None = None  # the dashboard that shows it over time; None for none
    question: LabelQuestionRow | None = None  # what people are asked about it; None for no question
    explanation: Explanation | None = None  # what its score rests on; None where there is nothing to say
