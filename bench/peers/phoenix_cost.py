"""phoenix-evals over the samples of `judge_cost.py`, in an environment of its own.

Faithfulness, relevance of each passage, and correctness, because it has no answer relevance. Prints one JSON object, as
`deepeval_cost.py` does.
"""

import asyncio
import json
import sys
from importlib.util import find_spec
from typing import Any

from measured_run import run


def runner(address: str, key: str, in_flight: int) -> Any:  # noqa: ANN401 - of its own environment
    """What judges rows and returns their scores."""
    import pandas as pd  # noqa: PLC0415
    from phoenix.evals import LLM, async_evaluate_dataframe  # noqa: PLC0415
    from phoenix.evals.metrics import (  # noqa: PLC0415
        CorrectnessEvaluator,
        FaithfulnessEvaluator,
        RetrievalRelevanceEvaluator,
    )

    async def evaluated(rows: list[dict[str, Any]]) -> list[Any]:
        # A new client, because each run has an event loop of its own, and old connections end with theirs.
        llm = LLM(provider="openai", model="gpt-4o-mini", client="openai", api_key=key, base_url=f"{address}/v1")
        answers = [FaithfulnessEvaluator(llm=llm), CorrectnessEvaluator(llm=llm)]
        passages = [RetrievalRelevanceEvaluator(llm=llm)]
        whole = [
            {"input": row["question"], "output": row["answer"], "context": "\n\n".join(row["contexts"])} for row in rows
        ]
        single = [{"input": row["question"], "context": text} for row in rows for text in row["contexts"]]
        options = {"concurrency": in_flight, "hide_tqdm_bar": True, "exit_on_error": False}
        # One after the other: both at once would be twice as many in flight.
        return [
            await async_evaluate_dataframe(dataframe=pd.DataFrame(single), evaluators=passages, **options),
            await async_evaluate_dataframe(dataframe=pd.DataFrame(whole), evaluators=answers, **options),
        ]

    def judge(rows: list[dict[str, Any]]) -> list[dict[str, float | None]]:
        scores = []
        for frame in asyncio.run(evaluated(rows)):
            columns = [name for name in frame.columns if name.endswith("_score")]
            scores += [
                {name: _score(value) for name, value in row.items()} for row in frame[columns].to_dict("records")
            ]
        return scores

    return judge


def _score(value: Any) -> float | None:  # noqa: ANN401 - JSON, or a mapping, or nothing
    known = json.loads(value) if isinstance(value, str) else value
    return float(known["score"]) if isinstance(known, dict) and known.get("score") is not None else None


if __name__ == "__main__":
    if find_spec("phoenix"):
        run(runner, *sys.argv[1:])
    else:
        print("phoenix-evals is not installed here; bench/peers/judges.py runs this file where it is")
