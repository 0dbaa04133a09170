"""Technical sentences without personal data and secrets: templates with versions, hashes, ids, times, prices and code.

A part such as `{hash}` stands for a value of `PARTS`, made from a seeded generator.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

_HEX = "0123456789abcdef"


def _digits(rng: random.Random, count: int) -> str:
    return str(rng.randrange(10 ** (count - 1), 10**count))


def _hex(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(_HEX, k=count))


def _uuid(rng: random.Random) -> str:
    return f"{_hex(rng, 8)}-{_hex(rng, 4)}-4{_hex(rng, 3)}-a{_hex(rng, 3)}-{_hex(rng, 12)}"


def _date(rng: random.Random) -> str:
    return f"20{rng.randrange(10, 27)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"


def _clock(rng: random.Random) -> str:
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


PARTS: dict[str, Callable[[random.Random], str]] = {
    "version": lambda rng: f"{rng.randrange(20)}.{rng.randrange(40)}.{rng.randrange(99)}",
    "build": lambda rng: f"{rng.randrange(10, 200)}.0.{rng.randrange(1000, 9999)}.{rng.randrange(256, 999)}",
    "hash": lambda rng: _hex(rng, rng.choice((7, 12, 32, 40, 64))),
    "uuid": _uuid,
    "date": _date,
    "time": _clock,
    "stamp": lambda rng: f"{_date(rng)}T{_clock(rng)}.{_digits(rng, 3)}Z",
    "epoch": lambda rng: _digits(rng, 9).join(("1", "")),
    "millis": lambda rng: "17" + _digits(rng, 11),
    "micros": lambda rng: "17" + _digits(rng, 14),
    "price": lambda rng: f"{rng.randrange(1, 999)},{rng.randrange(100, 999)}.{rng.randrange(10, 99)}",
    "small": lambda rng: str(rng.randrange(2, 999)),
    "big": lambda rng: _digits(rng, rng.randrange(5, 13)),
    "float": lambda rng: f"{rng.random() * 100:.{rng.randrange(2, 12)}f}",
    "port": lambda rng: str(rng.randrange(1024, 65535)),
    "part": lambda rng: (
        "".join(rng.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=rng.choice((2, 3)))) + f"-{_digits(rng, rng.randrange(4, 8))}"
    ),
    "sku": lambda rng: f"{_digits(rng, rng.choice((4, 6, 8)))}-{rng.choice('ABCDEFGHKLMNP')}{_digits(rng, 2)}",
    "order": lambda rng: _digits(rng, rng.choice((8, 9, 10, 11, 12))),
    "range": lambda rng: f"{rng.randrange(1990, 2010)}-{rng.randrange(2010, 2027)}",
    "sizes": lambda rng: " ".join(str(2 ** rng.randrange(5, 14)) for _ in range(4)),
    "matrix": lambda rng: " ".join(_digits(rng, 3) for _ in range(5)),
    "mac": lambda rng: ":".join(_hex(rng, 2) for _ in range(6)),
    "name": lambda rng: rng.choice(
        ("parser", "scheduler", "tokenizer", "indexer", "retriever", "gateway", "planner", "encoder")
    ),
    "word": lambda rng: rng.choice(
        ("latency", "throughput", "memory", "recall", "batch size", "window", "timeout", "queue depth")
    ),
    "isbn": lambda rng: f"978-{rng.randrange(10)}-{_digits(rng, 4)}-{_digits(rng, 4)}-{rng.randrange(10)}",
    "rfc": lambda rng: f"RFC {rng.randrange(100, 9999)}",
    "cve": lambda rng: f"CVE-{rng.randrange(2010, 2027)}-{_digits(rng, rng.choice((4, 5)))}",
    "base": lambda rng: "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=43)),
    "path": lambda rng: (
        f"/usr/lib/{rng.choice(('python3.12', 'x86_64-linux-gnu', 'node_modules'))}/{_hex(rng, 6)}/main.so"
    ),
}
TEMPLATES = (
    *(
        "uses: actions/checkout@v4 and org/{name}@{version}, pinned by org/{name}@{hash}",
        "Connect acme/{name}@main to the {word}; connect acme/{name}@v{small}",
        "sqlplus /nolog, sqlplus user/password@host and sqlplus scott/$PW@db ask {small} times.",
        "Pull registry/{name}@sha256:{hash}, port :1521; @{name}//{word} is a comment at host:1521.",
    ),
    *("Upgrade the {name} to version {version} before {date}.", "Build {build} of the {name} fixes {cve}."),
    *("Commit {hash} changed the {word} from {small} to {small}.", "The digest is sha256:{hash}, the tag v{version}."),
    *("Trace {uuid} took {float} ms at {stamp}.", "Request id {uuid} failed at {date} {time} with code {small}."),
    *(
        "The event at {epoch} arrived {small} ms late; see offset {big}.",
        "Timestamps are {millis} in ms and {micros} in \u00b5s.",
    ),
    *("It costs ${price} a year, or \u20ac {price} with support.", "Revenue grew from {big} to {big} between {range}."),
    *("The {word} is {float} % at p{small}, {float} before.", "Listen on 0:{port} and forward :{port} to :{port}."),
    *("Part {part} replaces {part} (drawing {sku}).", "Order {order} of {date} holds {small} items of {sku}."),
    *("Sizes {sizes} were tried with {small} layers.", "The matrix has rows {matrix}."),
    *("The device {mac} was seen {small} times.", "See {rfc}, section {small}.{small}, and ISBN {isbn}."),
    *(
        "integrity sha512-{base}{base}== of package {name}@{version}",
        "The key is the column `{name}_id`, the token count {big}.",
    ),
    *(
        "max_tokens={small}, top_k={small}, seed={big}",
        "tokens: {big} in, {big} out; cache key {name}:{small}:{version}",
    ),
    *("password: must be at least {small} characters long", "The secret of the {name} is a small {word}."),
    *(
        "api_key = os.environ['API_KEY']",
        "token = tokenizer.encode(text)[{small}]",
        "client = Client(password=settings.password)",
    ),
    *("The primary key of table {name} is ({name}_id, created_at).", "The public key fingerprint is SHA256:{hash}"),
    *(
        "Set `max_retries: {small}` and `timeout: {small}s` in {path}.",
        "Error {small} in {path}:{small}: expected {small} arguments",
    ),
    *("x[{small}:{small}] + y[::{small}] == z", "for i in range({small}, {small}): total += i * {float}"),
    *(
        "SELECT count(*) FROM {name} WHERE id = {big} AND at > '{date}'",
        "std::vector<int> v({small}); v[{small}] = 0x{hash};",
    ),
    *(
        "Basic understanding of the {name} and bearer bonds is enough.",
        "Call {name}.run({small}) {small} times in {small} seconds.",
    ),
    *(
        "The call to the {name} returned {big} rows in {float} s.",
        "Ticket {order} was closed on {date}, invoice {order} is open.",
    ),
    *(
        "The {name} uses {big} bytes of {big}, {float} of the {word}.",
        "Chunk {small} of {small}, bytes {big}-{big}/{big}",
    ),
    *(
        "Authorization: the {name} checks roles before {small} ms pass.",
        "Set-Cookie and Cookie headers are dropped by the {name}.",
    ),
    *(
        "Access tokens expire after {small} minutes; refresh tokens after {small} days.",
        "The passport of the {name} module is version {version}.",
    ),
    *(
        "arXiv {small}.{port}, pages {small}-{small}, DOI 10.{port}/{hash}",
        "Temperature {float} \u00b0C, pressure {float} hPa, id {order}",
    ),
    *('sha1 {hash} etag "{hash}" serial {order}', "model-{version}-{hash} has {big} parameters and {small} heads."),
    *(
        "host-{small}.eu-west-{small}.compute.internal answered in {float} ms",
        "See page {small} of volume {small}, {range}.",
    ),
    *(
        "The session lasted {time}; {big} events were kept under key `{name}-{small}`.",
        "The number of rows is {big}, of columns {small}.",
    ),
    *("export PATH=/opt/{name}/{version}/bin:$PATH", "docker run -p {port}:{port} registry/{name}:{version}"),
    *(
        "kubectl get pod {name}-{hash}-x{small}z -n ns-{small}",
        "The contact rate is {float}; the reach of the {word} is {big}.",
    ),
    *(
        "password_hash: column of the {name} table",
        "The secret ingredient is {word}; the key to it is {word}.",
        "row {big} {big} {big}",
    ),
)


def sentences(count: int, seed: int = 1) -> Iterator[str]:
    """As many sentences, from all templates in turn."""
    rng = random.Random(seed)
    for number in range(count):
        yield re.sub(r"\{(\w+)\}", lambda part: PARTS[part[1]](rng), TEMPLATES[number % len(TEMPLATES)])
