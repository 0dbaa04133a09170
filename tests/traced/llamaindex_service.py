"""A query engine of LlamaIndex under OpenInference: an index in memory and its mock of a model."""

from export import QUESTION, TEXTS, flush, provider
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor


def main() -> None:
    """Answer one question."""
    Settings.llm, Settings.embed_model = MockLLM(max_tokens=4), MockEmbedding(embed_dim=4)
    index = VectorStoreIndex([TextNode(id_=f"d{rank}", text=text) for rank, text in enumerate(TEXTS)])
    tracers = provider()
    LlamaIndexInstrumentor().instrument(tracer_provider=tracers)
    print(index.as_query_engine(similarity_top_k=2).query(QUESTION))
    flush(tracers)


if __name__ == "__main__":
    main()
