"""Kind `http`: any retriever with an HTTP endpoint that takes a question and replies with ranked passages in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import model_validator

from ragwatch.core.canary.definition import Retrieved
from ragwatch.probes.asking import QueryRunner, exchange_with
from ragwatch.probes.endpoint import EndpointOptions, Expression, RetrieverOptions
from ragwatch.probes.expression import hits_of, vector_of
from ragwatch.probes.presets import PRESETS
from ragwatch.probes.template import places

if TYPE_CHECKING:
    from ragwatch.probes.exchange import HttpExchange


class Embedding(EndpointOptions):
    """An endpoint that turns a question into a vector.

    Attributes:
        vector: JMESPath of the list of numbers in its reply.
    """

    vector: Expression

    known_places: ClassVar[frozenset[str]] = frozenset({"query"})


class Options(RetrieverOptions):
    """Settings of a retriever behind HTTP.

    Attributes:
        preset: Defaults for `body`, `contexts` and `score`; see `probes/presets.py` for names.
        embed: Asked first, for retrievers that want a vector: `body` then holds `{{ vector }}`.
    """

    preset: str | None = None
    embed: Embedding | None = None

    known_places: ClassVar[frozenset[str]] = frozenset({"query", "k", "vector"})
    needed_places: ClassVar[frozenset[str]] = frozenset({"query", "vector"})

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, data: Any) -> Any:  # noqa: ANN401 - what pydantic is given
        name = data.get("preset") if isinstance(data, dict) else None
        if name is None:
            return data
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"preset {name!r} is not known; use one of: {', '.join(sorted(PRESETS))}")
        return {**PRESETS[name], **data}

    @model_validator(mode="after")
    def _check_vector(self) -> Self:
        needs = "vector" in places(self.body)
        if needs and self.embed is None:
            raise ValueError("`body` holds {{ vector }}; give `embed`, the endpoint that turns a question into one")
        if self.embed is not None and not needs:
            raise ValueError("`embed` is given and `body` holds no {{ vector }}; write it, or leave `embed` out")
        return self


class HttpProbe(QueryRunner):
    """Asks a retriever.

    Attributes:
        name: Configured name.
        concurrency: Questions under way at a time.
    """

    def __init__(self, options: Options, exchange: HttpExchange, embedding: HttpExchange | None, *, name: str) -> None:
        super().__init__(options, [exchange, *([] if embedding is None else [embedding])], name=name)
        self._options = options
        self._exchange = exchange
        self._embedding = embedding

    async def ask(self, query: str, k: int) -> Retrieved:
        """What comes back for a query, of which k passages are wanted. It raises nothing."""

        async def asked() -> Retrieved:
            values: dict[str, Any] = {"query": query, "k": k}
            if self._embedding is not None and self._options.embed is not None:
                reply = await self._embedding.send(values)
                values["vector"] = vector_of(self._options.embed.vector, reply)
            hits = hits_of(self._options.contexts, await self._exchange.send(values))
            return Retrieved(hits[:k], self._options.score)

        return await self.timed(asked)


def build(options: Options, *, name: str) -> HttpProbe:
    """The probe.

    Raises:
        ConfigError: The extra `probes` is not installed, or a `ca_file` cannot be read.
    """
    embedding = None if options.embed is None else exchange_with(options.embed, name)
    return HttpProbe(options, exchange_with(options, name), embedding, name=name)
