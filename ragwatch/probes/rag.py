"""Kind `rag`: queries the whole service, so that answers to canaries can be judged too.

An oracle run sends the expected contexts to the service: a bad answer is then a fault of the generator.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from pydantic import Field

from ragwatch.probes.endpoint import EndpointOptions, Expression, RetrieverOptions
from ragwatch.probes.expression import ExchangeError, hits_of, text_of
from ragwatch.probes.query_runner import QueryRunner
from ragwatch.statistics.canary.definition import Failure, Retrieved


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


class RagProbe(QueryRunner[Options]):
    """Sends queries to a service; implements `ports.Oracle`."""

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
            if self._other is None or self._options.oracle is None:
                raise ExchangeError(Failure.SHAPE, "oracle: is not configured")
            reply = await self._other.send({"query": query, "contexts": list(contexts)})
            return Retrieved(answer=text_of(self._options.oracle.answer, reply, "oracle.answer"))

        return await self.timed(answer)


def build(options: Options, *, name: str, mark: Callable[[], str] | None = None) -> RagProbe:
    """Build the probe of a suite. See `QueryRunner`."""
    return RagProbe(options, options.oracle, name=name, mark=mark)
