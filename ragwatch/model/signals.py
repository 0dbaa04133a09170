"""The signals of traffic, which need no judge: one row for each."""

from dataclasses import dataclass

from ragwatch.model.enumerations import RowEnum

GROSS = 0.5
"""Rise of a share from which on most users are affected, whatever a judge says."""
RATIO_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRow:
    """All that depends on the signal alone."""

    name: str  # its name in the configuration and in the label `signal`
    counter: str = ""  # name of the stored counter, which `statistics.tally.Tally` lists; by default that of the signal
    series: str = ""  # name of its series; by default that of the signal as a histogram or a total
    help: str  # HELP of its series
    bounds: tuple[float, ...] | None = None  # of the buckets of its histogram; None where requests are counted
    signed: bool = False  # whether its values may be negative
    # For values that grow by themselves: the bound from which on they have changed where they are more than doubled,
    # and never where they fell. Its bounds double from there on. None: every change counts.
    doubles_from: float | None = None
    warns: bool = False  # whether its drift alarm is a warning, as users notice at once; others inform
    rise: float | None = None  # of the share of answers that have it, from which on its alarm is a page
    explains: bool = False  # answers that have it score otherwise: alerts on quality would repeat its own
    follows: str = ""  # another signal whose change entails one of this; `explains` for all that explain
    title: str  # title of its panel
    panel: str  # description of its panel
    unit: str = "reqps"  # grafana's unit of its panel
    percentiles: tuple[tuple[float, str], ...] = ()  # percentiles of its histogram that are shown, with their names

    def __post_init__(self) -> None:
        series = f"ragwatch_traffic_{self.name}{'_total' if self.bounds is None else ''}"
        object.__setattr__(self, "counter", self.counter or self.name)
        object.__setattr__(self, "series", self.series or series)


class Signal(RowEnum):
    """Signals of all traffic that can be watched for drift."""

    row: SignalRow

    CONTEXTS = SignalRow(
        name="contexts",
        help="Number of contexts retrieved per answer, over all traffic.",
        bounds=(0, 1, 2, 3, 5, 8, 10, 15, 20, 50, 100),
        title="Contexts",
        panel="Number of contexts per answer: 10th, 50th and 90th percentile.",
        unit="none",
        percentiles=((0.1, "10%"), (0.5, "50%"), (0.9, "90%")),
    )
    TOP_SCORE = SignalRow(
        name="top_context_score",
        counter="top_score",
        help="Score of the top-ranked context, in the retriever's unit, over all traffic; buckets only: it may be "
        "negative.",
        bounds=(*(0.0, *RATIO_BUCKETS), 2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
        signed=True,
        title="Score of the top context",
        panel="In the unit of the retriever: 10th, 50th and 90th percentile.",
        unit="none",
        percentiles=((0.1, "10%"), (0.5, "50%"), (0.9, "90%")),
    )
    ANSWER_CHARS = SignalRow(
        name="answer_chars",
        help="Length of answers in characters, over all traffic.",
        bounds=(0, 50, 100, 200, 500, 1000, 2000, 5000, 10000),
        title="Answer length",
        panel="Number of characters: median and 90th percentile.",
        unit="none",
        percentiles=((0.5, "median"), (0.9, "90 %")),
    )
    ABSTENTIONS = SignalRow(
        name="abstentions",
        help="Total number of answers that decline to answer, over all traffic.",
        warns=True,
        rise=GROSS,
        explains=True,
        follows="empty_retrievals",
        title="Abstentions",
        panel="Answers per second that decline to answer.",
    )
    EMPTY_RETRIEVALS = SignalRow(
        name="empty_retrievals",
        help="Total number of answers for which no context was retrieved, over all traffic.",
        warns=True,
        rise=GROSS,
        explains=True,
        title="Empty retrievals",
        panel="Answers per second without any retrieved context.",
    )
    EMPTY_ANSWERS = SignalRow(
        name="empty_answers",
        help="Total number of answers without text, over all traffic.",
        warns=True,
        rise=GROSS,
        explains=True,
        follows="empty_retrievals",
        title="Empty answers",
        panel="Answers per second without text.",
    )
    OTHER_LANGUAGE = SignalRow(
        name="other_language",
        help="Total number of answers that are surely in another script or language than their question, over all "
        "traffic.",
        warns=True,
        rise=GROSS,
        explains=True,
        title="Answers in another language",
        panel="Answers per second in another script or language than their question.",
    )
    REPEATED_ANSWERS = SignalRow(
        name="repeated_answers",
        help="Total number of answers that were given before to another question, of those that do not decline to "
        "answer, over all traffic.",
        warns=True,
        rise=GROSS,
        explains=True,
        title="Repeated answers",
        panel="Answers per second that were given before to another question.",
    )
    DUPLICATE_CONTEXTS = SignalRow(
        name="duplicate_contexts",
        help="Total number of answers with duplicate contexts, over all traffic.",
        warns=True,
        follows="empty_retrievals",
        title="Duplicate contexts",
        panel="Answers per second with duplicate contexts.",
    )
    UNCITED_ANSWERS = SignalRow(
        name="uncited_answers",
        help="Total number of answers that cite no context in brackets, though contexts were retrieved and they do not "
        "decline to answer, over all traffic.",
        warns=True,
        follows="explains",
        title="Answers without citations",
        panel="Answers per second that cite no context, though contexts were retrieved.",
    )
    DANGLING_CITATIONS = SignalRow(
        name="dangling_citations",
        help="Total number of answers that cite a context that was not retrieved ([7] of five), over all traffic.",
        warns=True,
        follows="explains",
        title="Dangling citations",
        panel="Answers per second that cite a context that was not retrieved.",
    )
    DOCUMENT_AGE = SignalRow(
        name="document_age_days",
        counter="document_age",
        series="ragwatch_traffic_document_age",
        help="Age in days of the documents of an answer (median of its contexts with `updated_at`) when it was given, "
        "over all traffic.",
        bounds=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
        doubles_from=16,
        warns=True,
        title="Age of documents",
        panel="Days since the documents of an answer were changed: median and 90th percentile.",
        unit="d",
        percentiles=((0.5, "median"), (0.9, "90 %")),
    )
    QUESTION_WORDS = SignalRow(
        name="question_words",
        counter="question_strangeness",
        series="ragwatch_traffic_question_strangeness_ratio",
        help="Novelty of the words in a question against earlier questions, 0 (common) to 1 (unseen), over all "
        "traffic.",
        bounds=RATIO_BUCKETS,
        title="Question novelty",
        panel="Novelty of the words in questions against earlier questions: 0 is common, 1 is unseen.",
        unit="percentunit",
        percentiles=((0.5, "median"), (0.9, "90 %")),
    )
