"""Kind `local`: the embedded judge with a cross-encoder. It needs no key and no network.

In addition to the lexical judge it estimates, with a small model, whether evidence that shares the words of a claim
supports it, contradicts it (`reads_contradiction` is True) or neither, as a calibrated probability. Relevance and
address are those of the lexical judge. The model reads English only; other texts get the lexical ruling, and are
counted. Method, data, figures and limits: `training/LOCAL.md`. Needs the extra `local`; without it, or without its
model, it falls back to the lexical judge and logs an error.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ragwatch.judges.claims.limits import Deadline
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import Count, ModelJudge, Probability
from ragwatch.judges.lexical.reader import CrossEncoder
from ragwatch.judges.lexical.rows import ModelRules
from ragwatch.judges.local.artefact import load, released_folder
from ragwatch.judges.local.cross_encoder import CrossEncoderPass, LexicalOnlyReason
from ragwatch.model.sample import Sample
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
    max_pairs: Count = Field(
        256,
        description=(
            "Pairs of a claim and evidence that the model reads of one sample; the lexical judge rules on the rest."
        ),
    )
    max_seconds: Annotated[float, Field(gt=0.0, le=3600.0)] = Field(
        2.0,
        description="A sample that takes more CPU seconds to read by words is left unjudged; the model's do not count.",
    )


class LocalJudge(ModelJudge):
    """Reads samples by comparing words, and rules on claims with a cross-encoder."""

    kind = "local"
    cross_encoder: CrossEncoderPass | None = None

    def __init__(self, options: Options, *, name: str, context: JudgeContext) -> None:
        shared = options.model_dump(include=set(lexical.Options.model_fields), exclude_none=True)
        super().__init__(lexical.Options(**shared), name=name, context=context)
        self._start(lambda: self._load(options), options, LexicalOnlyReason)

    def _cross_encoder_within(self, sample: Sample, deadline: Deadline) -> CrossEncoder | None:  # noqa: ARG002
        return None if self.cross_encoder is None else partial(self.cross_encoder, deadline=deadline)

    def _load(self, options: Options) -> str:
        artefact = load(options.weights or released_folder())
        from ragwatch.judges.local.session import PairModel  # noqa: PLC0415 - an extra that only this kind needs

        rules = ModelRules(
            lexical=self._thresholds,
            supported_from=options.support or artefact.supported_from,
            contradicted_from=options.contradiction or artefact.contradicted_from,
            max_pairs=options.max_pairs,
        )
        self.cross_encoder = CrossEncoderPass(artefact, PairModel(artefact), rules, self._count_lexical_only)
        return f"local-{artefact.version}"


def build(options: Options, *, name: str, context: JudgeContext) -> LocalJudge:
    """Build the judge, with the model of the package `ragwatch-reader` or of the configured folder."""
    return LocalJudge(options, name=name, context=context)
