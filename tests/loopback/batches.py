"""Message Batches: created, looked at until they end, read as lines of JSON in no order."""

import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from loopback import messages
from loopback.faults import ENTRY, REFUSALS, Refusal
from loopback.wire import Reply, error_of, invalid, refused
from loopback.world import PATH, Batch, World

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def create(body: Any, world: World, address: str) -> Reply:
    """A new batch, in progress. Entries are checked when they are processed, names at once."""
    requests = body.get("requests") if isinstance(body, Mapping) else None
    if not isinstance(requests, list) or not requests:
        return invalid("requests: List should have at least 1 item", PATH)
    names = [each.get("custom_id") for each in requests]
    for index, name in enumerate(names):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return invalid(f"requests.{index}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'", PATH)
    if len(set(names)) < len(names):
        return invalid("requests: custom_id must be unique", PATH)
    batch = Batch(world.new_id("msgbatch"), requests, world.now())
    world.batches[batch.id] = batch
    return Reply(batch.shown(address))


def look(name: str, world: World, address: str) -> Reply:
    """A batch now. It may end by being looked at, and is billed then."""
    batch = world.batches.get(name)
    if batch is None:
        return _unknown(name)
    usage = _advance(batch, world)
    return Reply(batch.shown(address), usage=usage, batch=True)


def _advance(batch: Batch, world: World) -> dict[str, int]:
    """Count a look; when it was the last one that the script wants, end the batch. Tokens of what was processed."""
    batch.looks += 1
    rules = world.control.batch
    ripe = batch.looks >= rules.polls and world.now() - batch.created >= rules.seconds
    if batch.ended is not None or not ripe:
        return {}
    usage: Counter[str] = Counter()
    batch.results = [_result(each, world, usage) for each in batch.requests]
    if rules.shuffled:
        random.Random(world.control.seed).shuffle(batch.results)
    batch.ended = world.now()
    return dict(usage)


def _result(entry: Mapping[str, Any], world: World, usage: Counter[str]) -> dict[str, Any]:
    params: Any = entry.get("params")
    fault = world.script.pick(ENTRY, json.dumps(entry))
    kind = fault.kind if fault else ""
    if kind:
        world.record.faults[kind] += 1
    result: dict[str, Any]
    if kind == "expired":
        result = {"type": "expired"}
    elif kind in REFUSALS:
        result = {"type": "errored", "error": error_of(REFUSALS[kind], PATH)}
    else:
        reply, _ = messages.answer(params, world, fault, batch=True)
        good = reply.status == 200
        if good:
            world.cache.keep(params)
        usage.update(reply.usage)
        result = (
            {"type": "succeeded", "message": reply.payload} if good else {"type": "errored", "error": reply.payload}
        )
    return {"custom_id": entry["custom_id"], "result": result}


def results(name: str, world: World) -> Reply:
    """The results, a line each."""
    batch = world.batches.get(name)
    if batch is None or batch.results is None:
        return _unknown(f"{name} has no results")
    lines = "".join(json.dumps(each) + "\n" for each in batch.results)
    return Reply(lines.encode(), media="application/x-jsonl")


def listed(query: Mapping[str, str], world: World, address: str) -> Reply:
    """Batches, newest first, a page of them."""
    names = list(reversed(world.batches))
    if query.get("after_id") in world.batches:
        names = names[names.index(query["after_id"]) + 1 :]
    limit = int(query.get("limit", "20"))
    shown = [world.batches[name].shown(address) for name in names[:limit]]
    return Reply({
        "data": shown,
        "has_more": len(names) > limit,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
    })  # fmt: skip


def _unknown(what: str) -> Reply:
    return refused(Refusal(404, "not_found_error", f"Message Batch: {what}"), PATH)
