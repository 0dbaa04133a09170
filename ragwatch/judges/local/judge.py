"""Kind `local`: the embedded judge with a cross-encoder. It needs no key and no network.

In addition to the lexical judge it estimates, with a small model, whether evidence that shares the words of a claim
supports it, contradicts it (`reads_contradiction` is True) or neither, as a calibrated probability. Relevance and
address are those of the lexical judge. The model reads English only; other texts get the lexical ruling, and are
counted. Method, data, figures and limits: `training/LOCAL.md`. Needs the extra `local`; without it, or without its
model, it falls back to the lexical judge and logs an error.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ragwatch.core.sample import Sample
from ragwatch.errors import RagwatchError
from ragwatch.judges.claims.limits import Deadline
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import LexicalJudge, Probability, version_suffix
from ragwatch.judges.lexical.reader import CrossEncoder
from ragwatch.judges.lexical.reference import READING_VERSION
from ragwatch.judges.lexical.rows import Thresholds
from ragwatch.judges.local.artefact import ModelArtefact, load, released_folder
from ragwatch.judges.local.cross_encoder import CrossEncoderPass, CrossEncoderRules, LexicalOnlyReason
from ragwatch.ports import JudgeContext


class Options(lexical.Options):
    """Settings of the local judge, and those of the lexical judge."""

    support: Probability | None = Field(  # type: ignore[assignment]  # null for the fitted one
        None, description="Probability at which a claim counts as supported; null for the fitted one."
    )
    contradiction: Probability | None = Field(
        None, description="Probability at which an unsupported claim counts as contradicted; null for the fitted one."
    )
    weights: Path | None = Field(
        None, description="Folder of another model of `training/`; null for the one in the package `ragwatch-reader`."
    )
    max_pairs: Annotated[int, Field(ge=1)] = Field(
        256,
        description=(
            "Pairs of a claim and evidence that the model reads of one sample; the lexical judge rules on the rest."
        ),
    )
    max_seconds: Annotated[float, Field(gt=0.0, le=3600.0)] = Field(
        2.0,
        description="A sample that takes more CPU seconds to read by words is left unjudged; the model's do not count.",
    )


class LocalJudge(LexicalJudge):
    """Reads samples by comparing words, and rules on claims with a cross-encoder.

    Attributes:
        name: Configured name.
        kind: `local`.
        model: Version of the model and its tables.
        version: Changes with the model, the tables, the thresholds and `max_pairs`. In fallback it is the version of
            the lexical judge, whose verdicts are the same.
        concurrency: Maximum number of samples read concurrently.
        fallback: Why it has fallen back to the lexical judge; None if it has a model.
    """

    kind = "local"
    cross_encoder: CrossEncoderPass | None = None

    def __init__(self, options: Options, *, name: str, context: JudgeContext) -> None:
        super().__init__(_lexical_options(options), name=name, context=context)
        self.fallback: str | None = None
        lexical_version = f"{self.model}-r{READING_VERSION}"
        try:
            artefact = load(options.weights or released_folder())
            self.cross_encoder = self._load_cross_encoder(artefact, options)
        except ImportError as error:
            package = (error.name or str(error)).replace("_", "-")
            self.fallback = f"{package} is not installed; pip install 'ragwatch-exporter[local]'"
        except RagwatchError as error:
            self.fallback = str(error)
        else:
            self.model = f"local-{artefact.version}"
            self.version = f"{self.model}-{lexical_version}{version_suffix(options)}"
            self._count_lexical_only(dict.fromkeys(LexicalOnlyReason, 0))  # so that `increase` sees the first
        context.telemetry.judge_fell_back(name, self.version, self.fallback)

    def _cross_encoder_within(self, sample: Sample, deadline: Deadline) -> CrossEncoder | None:  # noqa: ARG002
        return None if self.cross_encoder is None else partial(self.cross_encoder, deadline=deadline)

    def _load_cross_encoder(self, artefact: ModelArtefact, options: Options) -> CrossEncoderPass:
        from ragwatch.judges.local.session import PairModel  # noqa: PLC0415 - an extra that only this kind needs

        rules = CrossEncoderRules(
            lexical=Thresholds(_lexical_options(options).support, options.relevance),
            supported_from=options.support or artefact.supported_from,
            contradicted_from=options.contradiction or artefact.contradicted_from,
            max_pairs=options.max_pairs,
        )
        return CrossEncoderPass(artefact, PairModel(artefact), rules, self._count_lexical_only)


def _lexical_options(options: Options) -> lexical.Options:
    """The options of the lexical judge."""
    shared = options.model_dump(include=set(lexical.Options.model_fields), exclude_none=True)
    return lexical.Options(**shared)


def build(options: Options, *, name: str, context: JudgeContext) -> LocalJudge:
    """Build the judge, with the model of the package `ragwatch-reader` or of the configured folder."""
    return LocalJudge(options, name=name, context=context)
