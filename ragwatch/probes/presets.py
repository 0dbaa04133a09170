"""Presets: what well-known retrievers ask for and reply. Each gives defaults; whatever the configuration sets wins.

`score` is left out where an engine's own setting decides what a score means: it is declared, never guessed. Vector
stores are asked with a vector, so they need `embed`, the endpoint that turns a question into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
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
        # POST .../INDEX/_search, full text; Elasticsearch is asked and replies alike
        "opensearch": {
            "body": {"size": "{{ k }}", "query": {"match": {"text": "{{ query }}"}}},
            "contexts": "hits.hits[].{id: _id, text: _source.text || _source.content || _source.body, score: _score}",
            "score": "similarity",
        },
        # POST .../rpc/match_documents: pgvector behind PostgREST, with the function that its guides define
        "postgrest": {
            "body": {"query_embedding": "{{ vector }}", "match_count": "{{ k }}"},
            "contexts": "[].{id: id, text: content, score: similarity}",
            "score": "similarity",
        },
    }
)
