"""A model that answers by rule, on the loopback: the protocols that LLM judges speak, with scripted faults.

`python -m loopback.server --port 0` with `tests/` on the path prints its address and serves:

| path                              | what                                                                            |
|-----------------------------------|---------------------------------------------------------------------------------|
| POST /v1/messages                 | Anthropic Messages, without streaming                                           |
| POST /v1/messages/count_tokens    | characters / 4                                                                  |
| /v1/messages/batches...           | create, list, get, results                                                      |
| POST /v1/chat/completions         | OpenAI chat; also what ragas asks                                               |
| POST /v1/embeddings, GET /v1/models | what ragas and capability probes need                                         |
| POST /control                     | a script: faults, latency (see `loopback.faults`); all begins anew, or         |
|                                   | with `?keep=1` goes on with it                                                  |
| GET /record, DELETE /record       | what it was asked, and forget it                                                |

Evidence is what the embedded judge reads in the page, so the same page gets the same reply.
"""
