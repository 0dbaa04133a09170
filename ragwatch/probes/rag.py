"""Kind `rag`: asks the whole service, so that canaries can be judged as answers too.

An oracle run hands the service the contexts it should have found: what is wrong then is the generator's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ragwatch.core.canary.definition import Failure, Retrieved
from ragwatch.probes.asking import QueryRunner, exchange_with
from ragwatch.probes.endpoint import EndpointOptions, Expression, RetrieverOptions
from ragwatch.probes.expression import hits_of, text_of
from ragwatch.probes.failure import ExchangeError

if TYPE_CHECKING:
    from ragwatch.probes.exchange import HttpExchange


class OracleEndpoint(EndpointOptions):
    """Where the service answers from contexts that it is given: its `body` holds `{{ contexts }}`, a list of texts.

    Attributes:
        answer: JMESPath of the answer in the reply.
    """

    answer: Expression

    known_places: ClassVar[frozenset[str]] = frozenset({"query", "contexts"})
    needed_places: ClassVar[frozenset[str]] = frozenset({"contexts"})


class Options(RetrieverOptions):
    """Settings of a whole service.

    Attributes:
        answer: JMESPath of the answer in the reply.
        oracle: How to hand it its contexts.
    """

    answer: Expression
    oracle: OracleEndpoint | None = None


class RagProbe(QueryRunner):
    """Asks a service.

    Attributes:
        name: Configured name.
        concurrency: Questions under way at a time.
    """

    def __init__(self, options: Options, exchange: HttpExchange, oracle: HttpExchange | None, *, name: str) -> None:
        super().__init__(options, [exchange, *([] if oracle is None else [oracle])], name=name)
        self._options = options
        self._exchange = exchange
        self._oracle = oracle

    async def ask(self, query: str, k: int) -> Retrieved:
        """Answer and contexts, of which the first k. It raises nothing."""

        async def asked() -> Retrieved:
            reply = await self._exchange.send({"query": query, "k": k})
            answer = text_of(self._options.answer, reply, "answer")
            return Retrieved(hits_of(self._options.contexts, reply)[:k], self._options.score, answer=answer)

        return await self.timed(asked)

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:
        """The answer from these contexts, and nothing retrieved. It raises nothing."""

        async def asked() -> Retrieved:
            if self._oracle is None or self._options.oracle is None:
                raise ExchangeError(Failure.SHAPE, "oracle: is not configured")
            reply = await self._oracle.send({"query": query, "contexts": list(contexts)})
            return Retrieved(answer=text_of(self._options.oracle.answer, reply, "oracle.answer"))

        return await self.timed(asked)


def build(options: Options, *, name: str) -> RagProbe:
    """The probe.

    Raises:
        ConfigError: The extra `probes` is not installed, or a `ca_file` cannot be read.
    """
    oracle = None if options.oracle is None else exchange_with(options.oracle, name)
    return RagProbe(options, exchange_with(options, name), oracle, name=name)
