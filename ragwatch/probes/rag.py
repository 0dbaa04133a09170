"""Kind `rag`: queries the whole service, so that answers to canaries can be judged too.

An oracle run sends the expected contexts to the service: a bad answer is then a fault of the generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from ragwatch.core.canary.definition import Failure, Retrieved
from ragwatch.probes.endpoint import EndpointOptions, Expression, RetrieverOptions
from ragwatch.probes.expression import ExchangeError, hits_of, text_of
from ragwatch.probes.query_runner import QueryRunner, build_exchange

if TYPE_CHECKING:
    from ragwatch.probes.exchange import HttpExchange


class OracleEndpoint(EndpointOptions):
    """Endpoint that answers from given contexts: its `body` contains `{{ contexts }}`, a list of texts."""

    answer: Expression = Field(description="JMESPath of the answer in the response.")

    allowed_placeholders: ClassVar[frozenset[str]] = frozenset({"query", "contexts"})
    required_placeholders: ClassVar[frozenset[str]] = frozenset({"contexts"})


class Options(RetrieverOptions):
    """Options of a RAG service."""

    answer: Expression = Field(description="JMESPath of the answer in the response.")
    oracle: OracleEndpoint | None = Field(
        None, description="Endpoint for oracle runs, which answers from given contexts."
    )


class RagProbe(QueryRunner):
    """Sends queries to a service; implements `ports.Oracle`."""

    def __init__(self, options: Options, exchange: HttpExchange, oracle: HttpExchange | None, *, name: str) -> None:
        super().__init__(options, [exchange, *([] if oracle is None else [oracle])], name=name)
        self._options = options
        self._exchange = exchange
        self._oracle = oracle

    async def ask(self, query: str, k: int) -> Retrieved:
        """See `Probe.ask`. The result contains the answer too."""

        async def retrieve_and_answer() -> Retrieved:
            reply = await self._exchange.send({"query": query, "k": k})
            answer = text_of(self._options.answer, reply, "answer")
            return Retrieved(hits_of(self._options.contexts, reply)[:k], self._options.score, answer=answer)

        return await self.timed(retrieve_and_answer)

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:
        """See `Oracle.ask_with`."""

        async def answer() -> Retrieved:
            if self._oracle is None or self._options.oracle is None:
                raise ExchangeError(Failure.SHAPE, "oracle: is not configured")
            reply = await self._oracle.send({"query": query, "contexts": list(contexts)})
            return Retrieved(answer=text_of(self._options.oracle.answer, reply, "oracle.answer"))

        return await self.timed(answer)


def build(options: Options, *, name: str, mark: Callable[[], str] | None = None) -> RagProbe:
    """Build the probe of a suite, whose requests carry a mark (see `core.canary.mark`): its name by default.

    Raises:
        ConfigError: A `ca_file` cannot be read.
    """
    mark = mark or (lambda: name)
    oracle = None if options.oracle is None else build_exchange(options.oracle, mark)
    return RagProbe(options, build_exchange(options, mark), oracle, name=name)
