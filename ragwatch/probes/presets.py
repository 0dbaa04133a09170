"""Presets: default requests and response expressions of well-known retrievers. The configuration overrides them.

`score` is left out if a setting of the engine determines the meaning of scores: it must then be configured. Vector
stores are queried with a vector and need `embed`, the endpoint that computes embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
