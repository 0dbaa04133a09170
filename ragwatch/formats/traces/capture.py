"""Which switch lets an instrumentation send texts, if it sends names only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ragwatch.formats.traces.span import Span

LIMIT_ADVICE = (
    "raise the limits of the SDK that sends it: OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 (128 by default), and no "
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
)
CUT_ADVICE = "raise or unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT in the service that sends it"
OTEL = "opentelemetry"
SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        "openinference": "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other "
        "OPENINFERENCE_HIDE_* variables",
        "traceloop": "set TRACELOOP_TRACE_CONTENT=true",
        "spring_ai": "set spring.ai.chat.client.observations.log-prompt, spring.ai.chat.observations.log-prompt, "
        "spring.ai.chat.observations.log-completion and spring.ai.vectorstore.observations.log-query-response to true, "
        "and add their texts to the spans",
        "semantic_kernel": "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
        "agent_framework": "set ENABLE_SENSITIVE_DATA=true",
        "pydantic_ai": "use InstrumentationSettings(include_content=True)",
        "haystack": "set HAYSTACK_CONTENT_TRACING_ENABLED=true",
        "azure": "set AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true",
        "vercel": "set recordInputs and recordOutputs of experimental_telemetry to true",
        OTEL: "set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
    }
)
"""What to set, by instrumentation. The keys are label values."""

_SCOPES = (
    ("openinference", "openinference"),
    ("pydantic", "pydantic_ai"),
    ("haystack", "haystack"),
    ("semantic", "semantic_kernel"),
    ("agent_framework", "agent_framework"),
    ("azure", "azure"),
    ("spring", "spring_ai"),
)
_KEYS = (
    (("openinference.",), "openinference"),
    (("traceloop.", "llm.request.", "llm.is_streaming"), "traceloop"),
    (("spring.ai.",), "spring_ai"),
    (("ai.operationId",), "vercel"),
    (("haystack.",), "haystack"),
)


def instrumentation_of(spans: Iterable[Span]) -> str:
    """Return which instrumentation sends spans: a key of `SWITCHES`.

    >>> instrumentation_of([Span("t", "s", "", "chat", 0, 1, {"traceloop.span.kind": "task"})])
    'traceloop'
    """
    for span in spans:
        for prefixes, name in _KEYS:
            if any(key.startswith(prefixes) for key in span.attributes):
                return name
        scope = span.scope.lower()
        for mark, name in _SCOPES:
            if mark in scope:
                return name
    return OTEL
