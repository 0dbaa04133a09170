"""Splits the docstrings of the Python standard library into passages. Every machine has them."""

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from ragwatch.demo import tokenizer
from ragwatch.errors import RagwatchError

# A fixed list, so that the corpus depends on the Python version only. Modules that need a display, warn or print on
# import, or exist on one operating system only are excluded.
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
MAX_CHUNKS = 4  # of this size, per docstring: the end of a long one is rarely asked for
_MIN_WORDS = 3
_DUPLICATES = frozenset({"bytearray", "frozenset", "memoryview"})  # same docstrings as bytes and set
# `__module__` of the functions of modules that re-export an implementation.
_IMPLEMENTATIONS = {
    "os": ("posix", "nt"),
    "os.path": ("posixpath", "ntpath", "genericpath"),
    "decimal": ("_pydecimal",),
}
_DOCTEST = re.compile(r"^[ \t]*>>>.*(?:\n[ \t]*\S.*)*", re.MULTILINE)
_CODE = re.compile(r"^\S*\w\(.*\)(?:\s*->.*)?$|^[-=~^*#+\s]{3,}$|.*\s{2,}#\s|^\w+ = ")
_LEADING_SIGNATURE = re.compile(r"^[\w.]+\([^)]*\)\s*(?:->\s*[\w\s,()\[\]]+?\s*)?(?:--|:)\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk of documentation."""

    id: str  # qualified name and number of the chunk, such as `textwrap.dedent#0`
    title: str  # qualified name of the documented object
    module: str
    text: str  # title, a colon, and the chunk itself

    @property
    def body(self) -> str:
        """The text without its title."""
        return self.text.removeprefix(f"{self.title}: ")


@cache
def read_corpus(chunk_words: int = CHUNK_WORDS) -> tuple[Passage, ...]:
    """Reads all passages, in a deterministic order for one Python version; cached.

    Smaller chunks hold the same text, apart from what the last ones leave over. `RagwatchError` if this Python has no
    docstrings (it runs with `-OO`).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated modules and names
        passages = tuple(_passages(chunk_words))
    if not passages:
        raise RagwatchError("the demo answers from the docstrings of Python; start it without -OO")
    return passages


def _passages(chunk_words: int) -> Iterator[Passage]:
    seen: set[str] = set()
    most = max(1, MAX_CHUNKS * CHUNK_WORDS // chunk_words)
    for name in MODULES:
        module = _import(name)
        for title, doc in () if module is None else _documented(module, name):
            bodies = chunks(doc, chunk_words)
            if bodies and bodies[0] not in seen:
                seen.add(bodies[0])
                for number, body in enumerate(bodies[:most]):
                    yield Passage(f"{title}#{number}", title, name, f"{title}: {body}")


def chunks(doc: str, chunk_words: int = CHUNK_WORDS) -> list[str]:
    """Splits a docstring into chunks of whole sentences, each of at most about so many words, or of one sentence.

    Examples, bare signatures and rulers are excluded.
    """
    result: list[str] = []
    current: list[str] = []
    size = 0
    for sentence in _prose(doc):
        length = len(sentence.split())
        if current and size + length > chunk_words:
            result.append(" ".join(current))
            current, size = [], 0
        current.append(sentence)
        size += length
    if current:
        result.append(" ".join(current))
    return [chunk for chunk in result if len(tokenizer.words(chunk)) >= _MIN_WORDS]


def _prose(doc: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", _DOCTEST.sub("", inspect.cleandoc(doc))):
        lines = [line.strip() for line in block.splitlines()]
        paragraph = " ".join(" ".join(line for line in lines if not _CODE.match(line)).split())
        for sentence in tokenizer.sentences(_LEADING_SIGNATURE.sub("", paragraph)):
            if len(sentence.split()) <= CHUNK_WORDS and len(tokenizer.words(sentence)) >= 2:
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
    for member, value in sorted(vars(module).items(), key=_preference):
        if member.startswith("_") or member in _DUPLICATES or not _belongs(value, name):
            continue
        doc = _own_doc(value)
        if doc:
            yield prefix + member, doc
        if inspect.isclass(value):
            yield from _methods(value, prefix + member)


def _preference(pair: tuple[str, object]) -> tuple[bool, bool, str]:
    """Sort key: functions before classes, str before bytes. Of two equal docstrings the first is kept."""
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
    """Whether the module itself, or its C accelerator, defines this class or function."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return False
    home = getattr(value, "__module__", None)
    if not isinstance(home, str):
        return False
    top = name.split(".", maxsplit=1)[0]
    homes = (name, *_IMPLEMENTATIONS.get(name, ()))
    return home in homes or home.split(".", maxsplit=1)[0] in (top, f"_{top}")
