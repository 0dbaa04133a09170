"""Kind `http`: a retriever with an HTTP endpoint that takes a query and returns ranked passages as JSON.

Presets are default requests and response expressions of well-known retrievers; the configuration overrides them.
`score` is left out if a setting of the engine determines the meaning of scores: it must then be configured. Vector
stores are queried with a vector and need `embed`, the endpoint that computes embeddings.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Self

from pydantic import Field, model_validator

from ragwatch.probes.endpoint import EndpointOptions, Expression, RetrieverOptions, placeholders
from ragwatch.probes.expression import hits_of, vector_of
from ragwatch.probes.query_runner import QueryRunner
from ragwatch.statistics.canary.definition import Retrieved

PRESETS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        # POST .../api/v2/tenants/TENANT/databases/DATABASE/collections/ID/query
        "chroma": {
            "body": {
                "query_embeddings": ["{{ vector }}"],
                "n_results": "{{ k }}",
                "include": ["documents", "distances"],
            },
            "contexts": {"id": "ids[0]", "text": "documents[0]", "score": "distances[0]"},
            "score": "distance",
        },
        # POST .../collections/NAME/points/query; cosine and dot give similarities, Euclid and Manhattan distances
        "qdrant": {
            "body": {"query": "{{ vector }}", "limit": "{{ k }}", "with_payload": True},
            "contexts": (
                "result.points[].{id: id, score: score,"
                " text: payload.text || payload.content || payload.page_content || payload.document}"
            ),
        },
        # POST .../INDEX/_search, full text; works for Elasticsearch too
        "opensearch": {
            "body": {"size": "{{ k }}", "query": {"match": {"text": "{{ query }}"}}},
            "contexts": "hits.hits[].{id: _id, text: _source.text || _source.content || _source.body, score: _score}",
            "score": "similarity",
        },
        # POST .../rpc/match_documents: pgvector behind PostgREST, with the function of its guides
        "postgrest": {
            "body": {"query_embedding": "{{ vector }}", "match_count": "{{ k }}"},
            "contexts": "[].{id: id, text: content, score: similarity}",
            "score": "similarity",
        },
    }
)


class Embedding(EndpointOptions):
    """An endpoint that returns the embedding of a query."""

    vector: Expression = Field(description="JMESPath of the list of numbers in its response.")

    allowed_placeholders: ClassVar[frozenset[str]] = frozenset({"query"})


class Options(RetrieverOptions):
    """Options of a retriever over HTTP."""

    preset: str | None = Field(
        None, description="Defaults for `body`, `contexts` and `score`; docs/canaries.md names them."
    )
    embed: Embedding | None = Field(
        None,
        description=(
            "Endpoint that computes embeddings, for retrievers that need one: `body` then contains `{{ vector }}`."
        ),
    )

    allowed_placeholders: ClassVar[frozenset[str]] = frozenset({"query", "k", "vector"})
    required_placeholders: ClassVar[frozenset[str]] = frozenset({"query", "vector"})

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, data: object) -> object:
        if not isinstance(data, dict) or (name := data.get("preset")) is None:
            return data
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"preset {name!r} is not known; use one of: {', '.join(sorted(PRESETS))}")
        return {**PRESETS[name], **data}

    @model_validator(mode="after")
    def _check_vector(self) -> Self:
        has_vector = "vector" in placeholders(self.body)
        if has_vector and self.embed is None:
            raise ValueError("`body` contains {{ vector }}; set `embed`, the endpoint that computes embeddings")
        if self.embed is not None and not has_vector:
            raise ValueError("`embed` is set, but `body` contains no {{ vector }}; add it, or remove `embed`")
        return self


class HttpProbe(QueryRunner[Options]):
    """Sends queries to a retriever; implements `ports.Probe`."""

    async def ask(self, query: str, k: int) -> Retrieved:
        """See `Probe.ask`."""

        async def retrieve() -> Retrieved:
            values: dict[str, object] = {"query": query, "k": k}
            if self._other is not None and self._options.embed is not None:
                reply = await self._other.send(values)
                values["vector"] = vector_of(self._options.embed.vector, reply)
            hits = hits_of(self._options.contexts, await self._exchange.send(values))
            return Retrieved(hits[:k], self._options.score)

        return await self.timed(retrieve)


def build(options: Options, *, name: str, mark: Callable[[], str] | None = None) -> HttpProbe:
    """Build the probe of a suite. See `QueryRunner`."""
    return HttpProbe(options, options.embed, name=name, mark=mark)
