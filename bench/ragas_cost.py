"""ragas over the samples of `judge_cost.py`, in ragas's own environment: its three metrics.

Started by `judge_cost.py`; prints one JSON object: seconds, CPU seconds and mean scores. Import, set-up and the first
samples, which warm it up, do not count. Where ragas is not installed (any other environment) it says so.
"""

import json
import math
import os
import statistics
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

os.environ["RAGAS_DO_NOT_TRACK"] = "true"


WARMING = 2


def measure(address: str, key: str, samples: list[dict[str, Any]], in_flight: int) -> dict[str, Any]:
    """Run ragas's `evaluate` on the first samples, and then once on all."""
    # Here, because this file is also opened where ragas is not.
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415
    from openai import AsyncOpenAI  # noqa: PLC0415
    from ragas import EvaluationDataset, RunConfig, evaluate  # noqa: PLC0415
    from ragas.llms import llm_factory  # noqa: PLC0415
    from ragas.metrics import (  # noqa: PLC0415
        Faithfulness,
        LLMContextPrecisionWithoutReference,
        ResponseRelevancy,
    )

    rows = [
        {"user_input": row["question"], "retrieved_contexts": row["contexts"], "response": row["answer"]}
        for row in samples
    ]

    def run(chosen: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - ragas's own type, unknown outside its environment
        # New clients, because `evaluate` has an event loop of its own each time, and old connections end with theirs.
        llm = llm_factory("gpt-4o-mini", client=AsyncOpenAI(base_url=f"{address}/v1", api_key=key), max_tokens=16_384)
        # Without its own counting of tokens, which would fetch a table from the network.
        embeddings = OpenAIEmbeddings(base_url=f"{address}/v1", api_key=key, check_embedding_ctx_length=False)
        return evaluate(
            EvaluationDataset.from_list(chosen),
            [Faithfulness(), LLMContextPrecisionWithoutReference(), ResponseRelevancy()],
            llm=llm,
            embeddings=embeddings,
            run_config=RunConfig(max_workers=in_flight, timeout=600),
            show_progress=False,
        )

    run(rows[:WARMING])
    with urlopen(Request(f"{address}/record", method="DELETE")):  # noqa: S310 - the loopback
        wall, cpu = time.perf_counter(), time.process_time()
    scores = run(rows).scores
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    known = {name: [float(row[name]) for row in scores if not math.isnan(row[name])] for name in scores[0]}
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        "lost": len(scores) * len(known) - sum(map(len, known.values())),
        "scores": {name: statistics.fmean(values) for name, values in known.items() if values},
    }


def main() -> None:
    """Read what to do from the arguments: address, key, file of samples, calls in flight."""
    if find_spec("ragas") is None:
        print("ragas is not installed here; bench/judge_cost.py runs this file where it is")
        return
    address, key, samples, in_flight = sys.argv[1:]
    rows = [json.loads(line) for line in Path(samples).read_text(encoding="utf-8").splitlines()]
    print(json.dumps(measure(address, key, rows, int(in_flight))))


if __name__ == "__main__":
    main()
