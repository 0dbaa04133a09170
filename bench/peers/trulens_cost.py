"""TruLens over the samples of `judge_cost.py`, in an environment of its own.

Groundedness, relevance of each context, and answer relevance, all with reasons. Its default pace of 60 calls a minute
is lifted, and 16 samples are judged at a time, by threads as its own evaluator has them. Inside every groundedness
call it loads NLTK's sentence table from GitHub; the table cannot be had offline, so a regular expression splits
sentences here. Prints one JSON object, as `deepeval_cost.py` does.
"""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from measured_run import run

os.environ["TRULENS_OTEL_TRACING"] = "0"
_CALLS_A_MINUTE = 1_000_000


def runner(address: str, key: str, in_flight: int) -> Any:  # noqa: ANN401 - of its own environment
    """What judges rows and returns their scores."""
    import nltk  # noqa: PLC0415
    from trulens.feedback import llm_provider  # noqa: PLC0415
    from trulens.providers.openai import OpenAI  # noqa: PLC0415

    nltk.download = lambda *_, **__: True
    llm_provider.sent_tokenize = lambda text: [said for said in re.split(r"(?<=[.!?])\s+", text) if said]
    provider = OpenAI(model_engine="gpt-4o-mini", api_key=key, base_url=f"{address}/v1", rpm=_CALLS_A_MINUTE)

    def one(row: dict[str, Any]) -> dict[str, float | None]:
        question, answer, contexts = row["question"], row["answer"], row["contexts"]
        scores = {"groundedness": provider.groundedness_measure_with_cot_reasons("\n\n".join(contexts), answer)[0]}
        for rank, text in enumerate(contexts):
            scores[f"context_{rank}"] = provider.context_relevance_with_cot_reasons(question, text)[0]
        return scores | {"relevance": provider.relevance_with_cot_reasons(question, answer)[0]}

    def judge(rows: list[dict[str, Any]]) -> list[dict[str, float | None]]:
        with ThreadPoolExecutor(in_flight) as threads:
            return list(threads.map(one, rows))

    return judge


if __name__ == "__main__":
    if find_spec("trulens"):
        run(runner, *sys.argv[1:])
    else:
        print("TruLens is not installed here; bench/peers/judges.py runs this file where it is")
