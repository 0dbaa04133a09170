"""Kind `detector`: the embedded judge with a public hallucination or NLI model from a local folder.

It needs the extra `detector` (or `detector-torch` for a folder without an ONNX graph), and a folder that `ragwatch
detector fetch` wrote, or any with the same files. Without either it falls back to the lexical judge and logs an error.
Relevance, address and cells are those of the lexical judge. Nothing was measured here with real weights, so that its
scores have a level from labels only. Contradictions are read by models of the family `nli` alone.
"""

from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field

from ragwatch.judges.claims.limits import Deadline
from ragwatch.judges.detector.artefact import MIN_TOKENS, Name, open_detector
from ragwatch.judges.detector.reading import DetectorPass, LexicalOnlyReason
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import ModelJudge, Probability
from ragwatch.judges.lexical.reader import CrossEncoder
from ragwatch.judges.lexical.rows import ModelRules
from ragwatch.model.sample import Sample
from ragwatch.ports import JudgeContext


class Options(lexical.Options):
    """Settings of a detector, and those of the lexical judge."""

    model_config = ConfigDict(protected_namespaces=())

    model: Path = Field(description="Folder of the model, such as `ragwatch detector fetch` writes.")
    family: Name | None = Field(None, description="What the model reads; null to take it from its config.json.")
    graph: str | None = Field(None, description="Name of the ONNX graph in the folder; null for the usual ones.")
    max_tokens: Annotated[int, Field(ge=MIN_TOKENS)] | None = Field(
        None, description="Maximum number of tokens of an input; null for that of the family."
    )
    max_model_mb: int = Field(2000, ge=1, description="A larger model (in megabytes) is not loaded.")
    contradiction: Probability = Field(
        0.8, description="Probability at which a claim that is not supported counts as contradicted (family `nli`)."
    )
    max_pairs: int = Field(
        64, ge=1, description="Inputs that the model reads of one sample at most; the lexical judge rules on the rest."
    )
    max_seconds: Annotated[float, Field(gt=0.0, le=3600.0)] = Field(
        120.0, description="A sample that takes more CPU seconds to read, the model's own included, is left unjudged."
    )


class DetectorJudge(ModelJudge):
    """Reads samples by comparing words, and rules on claims with a detector."""

    kind = "detector"

    def __init__(self, options: Options, *, name: str, context: JudgeContext) -> None:
        super().__init__(options, name=name, context=context)
        self._pass: DetectorPass | None = None
        self._start(lambda: self._load(options), options, LexicalOnlyReason)

    def _cross_encoder_within(self, sample: Sample, deadline: Deadline) -> CrossEncoder | None:
        return None if self._pass is None else partial(self._pass, sample=sample, check=deadline)

    def _load(self, options: Options) -> str:
        detector = open_detector(
            options.model,
            family=options.family,
            graph=options.graph,
            max_tokens=options.max_tokens,
            max_megabytes=options.max_model_mb,
        )
        from ragwatch.judges.detector.session import DetectorModel  # noqa: PLC0415 - an extra that only this kind needs

        rules = ModelRules(self._thresholds, options.support, options.contradiction, options.max_pairs)
        model = DetectorModel(detector)
        self._pass = DetectorPass(model, detector.family, detector.classes, rules, self._count_lexical_only)
        return f"detector-{detector.name}-{detector.version}"


def build(options: Options, *, name: str, context: JudgeContext) -> DetectorJudge:
    """Build the judge, with the model of the configured folder."""
    return DetectorJudge(options, name=name, context=context)
