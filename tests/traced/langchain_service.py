"""A chain of LangChain under OpenInference: retriever, prompt and a model that answers from a script."""

from typing import Any

from export import QUESTION, TEXTS, flush, provider
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from openinference.instrumentation.langchain import LangChainInstrumentor


class Retriever(BaseRetriever):
    """Returns the same documents for every question."""

    def _get_relevant_documents(self, _query: str, *, run_manager: Any) -> list[Document]:  # noqa: ARG002 - its name
        return [Document(id=f"d{rank}", page_content=text) for rank, text in enumerate(TEXTS)]


def joined(documents: list[Document]) -> str:
    """The documents as one text."""
    return "\n\n".join(document.page_content for document in documents)


def main() -> None:
    """Answer one question."""
    tracers = provider()
    LangChainInstrumentor().instrument(tracer_provider=tracers)
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from:\n{context}"), ("user", "{question}")])
    model = FakeListChatModel(responses=["Paris."])
    retrieved = {"context": Retriever() | joined, "question": RunnablePassthrough()}
    chain = retrieved | prompt | model | StrOutputParser()
    print(chain.invoke(QUESTION))
    flush(tracers)


if __name__ == "__main__":
    main()
