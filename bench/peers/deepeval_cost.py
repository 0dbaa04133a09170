"""deepeval over the samples of `judge_cost.py`, in an environment of its own: its three metrics without a reference.

Prints one JSON object: seconds, CPU seconds, scores that came to nothing, and mean scores. Import and the first
samples, which warm it up, do not count. Without deepeval it says so.
"""

import os
import sys
from importlib.util import find_spec
from typing import Any

from measured_run import run

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0", "ERROR_REPORTING": "0"}
os.environ |= {"CONFIDENT_TRACING_ENABLED": "0", "CONFIDENT_OPEN_BROWSER": "0", "DEEPEVAL_RESULTS_FOLDER": ""}


def runner(address: str, key: str, in_flight: int) -> Any:  # noqa: ANN401 - of its own environment
    """What judges rows and returns their scores."""
    from deepeval import evaluate  # noqa: PLC0415
    from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig  # noqa: PLC0415
    from deepeval.metrics import AnswerRelevancyMetric, ContextualRelevancyMetric, FaithfulnessMetric  # noqa: PLC0415
    from deepeval.models import OpenAIModel  # noqa: PLC0415
    from deepeval.test_case import LLMTestCase  # noqa: PLC0415

    model = OpenAIModel(model="gpt-4o-mini", api_key=key, base_url=f"{address}/v1")

    def judge(rows: list[dict[str, Any]]) -> list[dict[str, float | None]]:
        cases = [
            LLMTestCase(input=row["question"], actual_output=row["answer"], retrieval_context=row["contexts"])
            for row in rows
        ]
        metrics = [kind(model=model) for kind in (FaithfulnessMetric, ContextualRelevancyMetric, AnswerRelevancyMetric)]
        done = evaluate(
            cases,
            metrics,
            async_config=AsyncConfig(max_concurrent=in_flight),
            cache_config=CacheConfig(write_cache=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        return [{one.name: one.score for one in result.metrics_data or ()} for result in done.test_results]

    return judge


if __name__ == "__main__":
    if find_spec("deepeval"):
        run(runner, *sys.argv[1:])
    else:
        print("deepeval is not installed here; bench/peers/judges.py runs this file where it is")
