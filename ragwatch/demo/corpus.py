"""Corpus: the documentation strings of Python's own standard library, cut into passages. Every machine has them."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from ragwatch.demo import words
from ragwatch.errors import RagwatchError

# Fixed, so that the corpus depends on the Python version only. Left out: what needs a display, warns, plays or prints
# on import, or belongs to one operating system.
MODULES = tuple(
    """builtins abc argparse array ast asyncio atexit base64 bdb binascii bisect bz2 calendar cmath cmd code
    codecs codeop collections collections.abc colorsys compileall concurrent.futures configparser contextlib
    contextvars copy copyreg csv ctypes dataclasses datetime dbm decimal difflib dis doctest email.header
    email.message email.parser email.policy email.utils enum errno faulthandler filecmp fileinput fnmatch
    fractions ftplib functools gc getopt getpass gettext glob graphlib gzip hashlib heapq hmac html html.parser
    http http.client http.cookiejar http.cookies http.server imaplib importlib importlib.metadata
    importlib.resources inspect io ipaddress itertools json keyword linecache locale logging logging.config
    logging.handlers lzma mailbox marshal math mimetypes mmap modulefinder multiprocessing netrc numbers
    operator optparse os os.path pathlib pdb pickle pickletools pkgutil platform plistlib poplib pprint profile
    pstats py_compile pyclbr queue quopri random re reprlib rlcompleter runpy sched secrets select selectors
    shelve shlex shutil signal smtplib socket socketserver sqlite3 ssl stat statistics string stringprep struct
    subprocess symtable sys sysconfig tabnanny tarfile tempfile textwrap threading time timeit token tokenize
    tomllib trace traceback tracemalloc types typing unicodedata unittest unittest.mock urllib.error
    urllib.parse urllib.request urllib.robotparser uuid venv warnings wave weakref webbrowser
    wsgiref.simple_server wsgiref.util xml.dom.minidom xml.etree.ElementTree xml.sax xmlrpc.client xmlrpc.server
    zipapp zipfile zipimport zlib zoneinfo""".split()  # noqa: SIM905  to be read
)
CHUNK_WORDS = 110
MOST_CHUNKS = 4  # of one documentation string: the tail of a long one is rarely asked for
_LEAST_WORDS = 3
_TWINS = frozenset({"bytearray", "frozenset", "memoryview"})  # word for word what bytes and set say
# Where functions say they live, for modules that are only a front of another.
_BEHIND = {"os": ("posix", "nt"), "os.path": ("posixpath", "ntpath", "genericpath"), "decimal": ("_pydecimal",)}
_DOCTEST = re.compile(r"^[ \t]*>>>.*(?:\n[ \t]*\S.*)*", re.MULTILINE)
_CODE = re.compile(r"^\S*\w\(.*\)(?:\s*->.*)?$|^[-=~^*#+\s]{3,}$|.*\s{2,}#\s|^\w+ = ")
_LEADING_SIGNATURE = re.compile(r"^[\w.]+\([^)]*\)\s*(?:->\s*[\w\s,()\[\]]+?\s*)?(?:--|:)\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of documentation.

    Attributes:
        id: Qualified name and number of the piece, such as `textwrap.dedent#0`.
        title: Qualified name of what is documented.
        module: Name of the module it lives in.
        text: Title, a colon, and the piece itself.
    """

    id: str
    title: str
    module: str
    text: str

    @property
    def body(self) -> str:
        """The text without its title."""
        return self.text.removeprefix(f"{self.title}: ")


@cache
def read_corpus() -> tuple[Passage, ...]:
    """All passages, always in the same order for one Python version; read once a process.

    Raises:
        RagwatchError: This Python carries no documentation strings (it runs with `-OO`).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modules, and of old names in them, that Python is going to drop
        found = tuple(_passages())
    if not found:
        raise RagwatchError("the demo answers from Python's own documentation strings; start it without -OO")
    return found


def _passages() -> Iterator[Passage]:
    seen: set[str] = set()
    for name in MODULES:
        module = _import(name)
        for title, doc in () if module is None else _documented(module, name):
            bodies = pieces(doc)
            if bodies and bodies[0] not in seen:
                seen.add(bodies[0])
                for number, body in enumerate(bodies[:MOST_CHUNKS]):
                    yield Passage(f"{title}#{number}", title, name, f"{title}: {body}")


def pieces(doc: str) -> list[str]:
    """A documentation string as pieces of whole sentences, at most about `CHUNK_WORDS` words each.

    Examples, bare signatures and rulers are left out: they are no sentences to answer with.
    """
    pieces_: list[str] = []
    current: list[str] = []
    size = 0
    for sentence in _prose(doc):
        length = len(sentence.split())
        if current and size + length > CHUNK_WORDS:
            pieces_.append(" ".join(current))
            current, size = [], 0
        current.append(sentence)
        size += length
    if current:
        pieces_.append(" ".join(current))
    return [piece for piece in pieces_ if len(words.words(piece)) >= _LEAST_WORDS]


def _prose(doc: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", _DOCTEST.sub("", inspect.cleandoc(doc))):
        lines = [line.strip() for line in block.splitlines()]
        paragraph = " ".join(" ".join(line for line in lines if not _CODE.match(line)).split())
        for sentence in words.sentences(_LEADING_SIGNATURE.sub("", paragraph)):
            if len(sentence.split()) <= CHUNK_WORDS and len(words.words(sentence)) >= 2:
                yield sentence if sentence[-1] in ".!?:" else f"{sentence}."


def _import(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:  # a Python built without it
        return None


def _documented(module: ModuleType, name: str) -> Iterator[tuple[str, str]]:
    prefix = "" if name == "builtins" else f"{name}."
    if prefix and module.__doc__:
        yield name, module.__doc__
    for member, value in sorted(vars(module).items(), key=_asked_first):
        if member.startswith("_") or member in _TWINS or not _belongs(value, name):
            continue
        doc = _own_doc(value)
        if doc:
            yield prefix + member, doc
        if inspect.isclass(value):
            yield from _methods(value, prefix + member)


def _asked_first(pair: tuple[str, object]) -> tuple[bool, bool, str]:
    """Functions before classes, str before bytes: of two that say the same, the first stays, the one people ask for."""
    member, value = pair
    return inspect.isclass(value), member == "bytes", member


def _methods(cls: type, title: str) -> Iterator[tuple[str, str]]:
    for member, value in sorted(vars(cls).items()):
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        doc = None if member.startswith("_") or inspect.isclass(inner) else _own_doc(inner)
        if doc and (callable(inner) or isinstance(inner, property)):
            yield f"{title}.{member}", doc


def _own_doc(value: object) -> str | None:
    doc = getattr(value, "__doc__", None)
    return doc if isinstance(doc, str) else None


def _belongs(value: object, name: str) -> bool:
    """A class or function that this module itself defines, or its accelerator written in C does."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return False
    home = getattr(value, "__module__", None)
    if not isinstance(home, str):
        return False
    top = name.split(".", maxsplit=1)[0]
    homes = (name, *_BEHIND.get(name, ()))
    return home in homes or home.split(".", maxsplit=1)[0] in (top, f"_{top}")
