"""Says which switch lets an instrumentation send texts, if it sends names only."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch.sources.otlp.span import Span

LIMIT_ADVICE = (
    "raise the limits of the SDK that sends it: OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 (128 by default), and no "
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
)
_SWITCHES = (
    ("openinference", "OpenInference", "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and the other "
     "OPENINFERENCE_HIDE_* variables"),
    ("spring", "Spring AI", "set spring.ai.chat.client.observations.log-prompt, "
     "spring.ai.chat.observations.log-prompt, spring.ai.chat.observations.log-completion and "
     "spring.ai.vectorstore.observations.log-query-response to true, and export them as attributes of spans"),
    ("semantic", "Semantic Kernel", "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true"),
    ("agent_framework", "Microsoft Agent Framework", "set ENABLE_SENSITIVE_DATA=true"),
    ("pydantic", "Pydantic AI", "use InstrumentationSettings(include_content=True)"),
    ("haystack", "Haystack", "set HAYSTACK_CONTENT_TRACING_ENABLED=true"),
    ("azure", "the Azure SDK", "set AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true"),
    ("opentelemetry.instrumentation.genai", "OpenTelemetry", ""),
    ("_v2", "OpenTelemetry", ""),
    ("ai", "the Vercel AI SDK", "set recordInputs and recordOutputs of experimental_telemetry to true"),
)  # fmt: skip
_OTEL = (
    "set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"
)
_TRACELOOP = "set TRACELOOP_TRACE_CONTENT=true"


def switch_for(spans: Iterable[Span]) -> str:
    """Return what to set so that texts arrive, for the instrumentation of these spans.

    >>> switch_for([Span("t", "s", "", "chat", 0, 1, {"traceloop.span.kind": "task"}, scope="opentelemetry.x")])
    'set TRACELOOP_TRACE_CONTENT=true'
    """
    known = list(spans)
    for span in known:
        if any(key.startswith(("traceloop.", "llm.request.", "llm.is_streaming")) for key in span.attributes):
            return _TRACELOOP
        scope = span.scope.lower()
        for mark, name, advice in _SWITCHES:
            matches = scope == mark if mark == "ai" else mark in scope
            if matches:
                return f"{advice} ({name})" if advice else _OTEL
        if any(key.startswith("spring.ai.") for key in span.attributes):
            return f"{_SWITCHES[1][2]} ({_SWITCHES[1][1]})"
        if any(key.startswith("ai.operationId") for key in span.attributes):
            return f"{_SWITCHES[-1][2]} ({_SWITCHES[-1][1]})"
    return _OTEL
