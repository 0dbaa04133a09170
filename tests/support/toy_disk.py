"""A toy model of a log directory: real files on disk, and beside them what each holds and what may be lost of it.

A line may be lost only when every file that held it is gone: truncated, or unlinked while no running tail had it open
(or the tail that had it open died). If a tail could know by then that there was more to read, it must say so. Nothing
may ever be counted twice.
"""

import gzip
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import orjson

from ragwatch.sources.tail.identity import FilePosition
from support.kit import AT
from support.shifting import Step

HEADER = b'{"log": "opened by the service, format 1, a line that is the same at the top of every file"}'
KEPT = 3
"""Rotations that are kept, as `rotate 3` of logrotate."""


@dataclass(eq=False)
class Content:
    """What one file holds."""

    ino: int  # its inode
    lines: list[int] = field(default_factory=list)  # numbers of its complete lines; a header has a negative one
    torn: int | None = None  # number of the line that has been begun and not ended, if any
    gone: bool = False  # nothing that is still unread in it can be demanded any more
    # lines that the stored cursor, when they were taken away, knew to be there and unread
    seen: set[int] = field(default_factory=set)


class ToyDisk:
    """Files `a.jsonl` and `b.jsonl` with rotations, and `c.jsonl`, a link into a pool of files.

    Args:
        root: An empty directory.
        with_ids: Whether records name themselves. If not, their place in the stream is their id.
        opened: Inodes that the running tail has open.
        kept: Numbers of the records that are stored.
        places: Places of the stored cursors.
        reuse: Whether the inode of an unlinked file may be given to another one. Which one gets it is up to the file
            system, so examples that are to be the same every time hold every unlinked file open in a morgue.
    """

    def __init__(
        self,
        root: Path,
        *,
        with_ids: bool,
        opened: Callable[[], set[int]],
        kept: Callable[[], set[int]],
        places: Callable[[], list[FilePosition]],
        reuse: bool,
    ) -> None:
        self.root = root
        self.names: dict[str, Content] = {}
        self.contents: list[Content] = []
        self.torn: set[int] = set()  # begun, and given up by the writer
        self._unlinked: list[Content] = []
        self._with_ids, self._opened, self._kept, self._places = with_ids, opened, kept, places
        self._last = 0
        self._headers = 0
        self._target = 0
        self._morgue = None if reuse else ExitStack()
        (root / "pool").mkdir(parents=True)

    @property
    def pattern(self) -> str:
        """What the tail is told to follow."""
        return str(self.root / "*.jsonl")

    @property
    def written(self) -> set[int]:
        """Every complete line there ever was, and headers (negative)."""
        return {line for content in self.contents for line in content.lines}

    @property
    def owed(self) -> set[int]:
        """Lines that are still held by a file: they must be counted in the end."""
        return {line for content in self.contents if not content.gone for line in content.lines}

    def write(self, name: str, count: int, *, header: bool) -> None:
        """The service appends whole records; a header first when the file is new."""
        content = self._current(name)
        text = self._end_torn(content)
        if header and not content.lines and not text:
            self._headers += 1
            content.lines.append(-self._headers)
            text += HEADER + b"\n"
        for _ in range(count):
            self._last += 1
            content.lines.append(self._last)
            text += self._record(self._last) + b"\n"
        self._append(name, text)

    def tear(self, name: str, share: float) -> None:
        """The service writes the first part of a record."""
        content = self._current(name)
        if content.torn is None:
            self._last += 1
            content.torn = self._last
            record = self._record(self._last)
            self._append(name, record[: max(1, int(len(record) * share))])

    def mend(self, name: str) -> None:
        """The service writes the rest of it."""
        if name in self.names and self.names[name].torn is not None:
            self._append(name, self._end_torn(self.names[name]))

    def rotate(self, name: str, *, create: bool) -> list[Step]:
        """Rename, as `create` or `nocreate` of logrotate: the steps of it, one for each name."""
        if name not in self.names:
            return []
        self._give_up_torn(self.names[name])
        steps: list[Step] = [*self._shift(name), partial(self._rename, name, f"{name}.1")]
        return [*steps, partial(self._current, name)] if create else steps

    def copytruncate(self, name: str) -> list[Step]:
        """Copy, then truncate: the steps of it."""
        if name not in self.names:
            return []
        self._give_up_torn(self.names[name])
        return [*self._shift(name), partial(self._copy, name, f"{name}.1"), partial(self._empty, name)]

    def truncate(self, name: str) -> None:
        """Empty the file in place."""
        if name in self.names:
            self._give_up_torn(self.names[name])
            self._empty(name)

    def delete(self, name: str) -> None:
        """Unlink the file."""
        if name in self.names:
            self._give_up_torn(self.names[name])
            self._unlink(name)

    def replace(self, name: str, count: int) -> None:
        """Put a copy in the place of the file, with further records at its end, as rsync, `sed -i` and editors do."""
        if name not in self.names:
            return
        old, copy = self.names[name], self.root / "temporary"
        copy.write_bytes((self.root / name).read_bytes())
        new = self._content(copy.name, list(old.lines))
        new.torn = old.torn
        self._give_up_torn(old)
        self._unlink(name)
        copy.rename(self.root / name)
        self.names[name] = new
        if count:
            self.write(name, count, header=False)

    def compress(self, name: str) -> None:
        """Turn the newest rotation into a .gz, as `compress` of logrotate."""
        plain, packed = f"{name}.1", f"{name}.1.gz"
        if plain not in self.names:
            return
        old = self.names[plain]
        (self.root / packed).write_bytes(gzip.compress((self.root / plain).read_bytes(), mtime=0))
        self.names[packed] = self._content(packed, list(old.lines), gone=old.gone)
        self._unlink(plain)

    def retarget(self) -> None:
        """Point the link `c.jsonl` at a new file, in one step."""
        name = "c.jsonl"
        if name in self.names:
            self._give_up_torn(self.names[name])
            self.names[f"pool/{self._target}.data"] = self.names.pop(name)
        self._target += 1
        target, link = self.root / f"pool/{self._target}.data", self.root / "link"
        target.touch()
        link.symlink_to(target)
        link.rename(self.root / name)
        self.names[name] = self._content(name)
        self._forget_targets()

    def process_died(self) -> None:
        """The tail is gone, and with it the last name of files that only it had open."""
        for content in self._unlinked:
            content.gone = True
        self._unlinked.clear()
        self._forget_targets()

    def close(self) -> None:
        """Close the morgue."""
        if self._morgue:
            self._morgue.close()

    def lost(self) -> list[set[int]]:
        """For each content that was taken away: its lines that a tail knew of, and that are stored nowhere."""
        kept = self._kept()
        groups: list[set[int]] = []
        for lines in (content.seen - kept for content in self.contents if content.gone):
            if lines:  # what two files held alike is one loss
                same = [each for each in groups if each & lines]
                groups = [each for each in groups if each not in same] + [lines.union(*same)]
        return groups

    def _forget_targets(self) -> None:
        """No name of theirs leads to earlier targets of the link, so a tail that has stored no place in them is blind.

        This loss cannot be helped, nor counted: where a link points is known only as long as it points there.
        """
        for name, content in self.names.items():
            if name.endswith(".data") and content.ino not in self._opened() and not self._read(content):
                content.gone = True

    def _content(self, name: str, lines: list[int] | None = None, *, gone: bool = False) -> Content:
        content = Content((self.root / name).stat().st_ino, lines or [], gone=gone)
        self.contents.append(content)
        return content

    def _current(self, name: str) -> Content:
        if name not in self.names:
            if name == "c.jsonl":
                self.retarget()
            else:
                (self.root / name).touch()
                self.names[name] = self._content(name)
        return self.names[name]

    def _append(self, name: str, text: bytes) -> None:
        with (self.root / name).open("ab") as file:
            file.write(text)

    def _record(self, number: int) -> bytes:
        record = {"id": f"r{number}"} if self._with_ids else {}
        rest = {"question": f"{number}", "contexts": ["Cats purr.", "Dogs bark."], "answer": "They purr.", "at": AT}
        return orjson.dumps(record | rest | {"route": "search"})

    def _end_torn(self, content: Content) -> bytes:
        """The rest of the line that was begun, if one was."""
        number, content.torn = content.torn, None
        if number is None:
            return b""
        content.lines.append(number)
        path = next(self.root / name for name, each in self.names.items() if each is content)
        begun = path.read_bytes().rpartition(b"\n")[2]
        return self._record(number)[len(begun) :] + b"\n"

    def _give_up_torn(self, content: Content) -> None:
        if content.torn is not None:
            self.torn.add(content.torn)
            content.torn = None

    def _read(self, content: Content) -> bool:
        """Whether something of it is stored: by that a tail can find the rest, wherever it lies now."""
        return not self._kept().isdisjoint(content.lines)

    def _shift(self, name: str) -> list[Step]:
        """The oldest rotation is removed at once; each other one gets its new name by a step of its own."""
        steps: list[Step] = []
        for number in range(KEPT, 0, -1):
            for end in ("", ".gz"):
                old = f"{name}.{number}{end}"
                if old in self.names and number == KEPT:
                    self._unlink(old)
                elif old in self.names:
                    steps.append(partial(self._rename, old, f"{name}.{number + 1}{end}"))
        return steps

    def _copy(self, name: str, copy: str) -> None:
        (self.root / copy).write_bytes((self.root / name).read_bytes())
        self.names[copy] = self._content(copy, list(self.names[name].lines))

    def _rename(self, old: str, new: str) -> None:
        (self.root / old).rename(self.root / new)
        self.names[new] = self.names.pop(old)

    def _unlink(self, name: str) -> None:
        content = self.names.pop(name)
        self._take_away(content, self.root / name)
        if content.ino in self._opened():
            self._unlinked.append(content)
        else:
            content.gone = True
        if self._morgue:  # opened by another name, because what is opened by its own is the tail's
            grave = self.root.with_name("grave")
            grave.hardlink_to(self.root / name)
            self._morgue.enter_context(grave.open("rb"))
            grave.unlink()
        (self.root / name).unlink()

    def _take_away(self, content: Content, path: Path) -> None:
        """Remember what a tail can know to be unread, if the place that it stored surely is in this content."""
        data = b"" if path.suffix == ".gz" else path.read_bytes()
        for place in self._places():
            if place.ino == content.ino and self._numbers(data[: place.offset]) & self._kept():
                content.seen |= self._numbers(data[place.offset : place.size])

    def _numbers(self, text: bytes) -> set[int]:
        """Numbers of the whole records in a text."""
        lines = text.split(b"\n")[:-1]
        return {int(orjson.loads(line)["question"]) for line in lines if line.endswith(b"}") and b'"question"' in line}

    def _empty(self, name: str) -> None:
        """The content of a name is thrown away; its inode stays."""
        self._take_away(self.names[name], self.root / name)
        self.names[name].gone = True
        with (self.root / name).open("r+b") as file:
            file.truncate(0)
        self.names[name] = self._content(name)
