"""Ways to damage a file, without updating any checksum."""

import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.reliability.hostile.sandbox import INTACT, OUTSIDE, VICTIM, Sandbox


class Target(NamedTuple):
    """A file to damage."""

    file: Path
    rng: random.Random
    sandbox: Sandbox

    @property
    def outside(self) -> Path:
        return self.sandbox.root / OUTSIDE

    def replace(self, change: Callable[[bytearray, random.Random], bytes]) -> None:
        """Change the content, until it differs."""
        before = self.file.read_bytes()
        after = before
        while after == before:
            after = bytes(change(bytearray(before), self.rng))
        self.file.write_bytes(after)

    def link(self, target: Path | str) -> None:
        self.file.unlink(missing_ok=True)
        self.file.symlink_to(target)


# Bytes


def truncate(content: bytearray, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def flip(content: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 8)):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return content


def zero(content: bytearray, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.randint(1, 4096))
    content[start:end] = bytes(end - start)
    return content


def insert(*parts: bytes) -> Callable[[bytearray, random.Random], bytes]:
    def change(content: bytearray, rng: random.Random) -> bytes:
        place = rng.randrange(len(content))
        content[place:place] = rng.choice(parts)
        return content

    return change


def swap(target: Target) -> None:
    """Exchange the content with another file of the run."""
    before = target.file.read_bytes()
    files = [path for path in sorted(target.sandbox.victim.rglob("*")) if path.is_file()]
    other = target.rng.choice([path for path in files if path.read_bytes() != before])
    target.file.write_bytes(other.read_bytes())
    other.write_bytes(before)


def take_from_another_run(target: Target) -> None:
    root = target.sandbox.root
    pattern = target.file.relative_to(root / VICTIM)
    shutil.copy(root / INTACT / pattern, target.file)


BYTES: dict[str, Callable[[Target], None]] = {
    "truncated": lambda target: target.replace(truncate),
    "flipped": lambda target: target.replace(flip),
    "zeroed": lambda target: target.replace(zero),
    "emptied": lambda target: target.file.write_bytes(b"") and None,
    "random": lambda target: target.replace(lambda content, rng: rng.randbytes(len(content))),
    "doubled": lambda target: target.replace(lambda content, rng: content * 2),
    "removed": lambda target: target.file.unlink(),
    "swapped": swap,
}
FOREIGN: dict[str, Callable[[Target], None]] = {"foreign": take_from_another_run}

# Text

VALUES = {
    "type": ['"x"', "null", "true", "[1]", '{"a": 1}', "1.5", ""],
    "huge": ["9" * 5000, "1e999", "1" + "0" * 30, "9" * 400 + ".0"],
    "negative": ["-1", "-1e30"],
    "nonfinite": ["NaN", "-Infinity", "inf"],
    "nested": ["[" * 600 + "]" * 600, "[" * 10**5 + "]" * 10**5, '{"a":' * 600 + "1" + "}" * 600],
    "text": [
        '"\\u0000"',
        '"\\ud800"',
        '"../../x"',
        '"=1+1|cmd"',
        '"</script>"',
        f'"{"a" * 10**6}"',
    ],
}
TOKEN = re.compile(rb'"[^"\n]*"|-?\d[\d.e+-]*|\{\}|\[\]')


def substitute(values: list[str]) -> Callable[[bytearray, random.Random], bytes]:
    """Replace a number, string or empty container by one of the values."""

    def change(content: bytearray, rng: random.Random) -> bytes:
        token = rng.choice(list(TOKEN.finditer(content)))
        return content[: token.start()] + rng.choice(values).encode() + content[token.end() :]

    return change


CHANGES = {name: substitute(values) for name, values in VALUES.items()}
CHANGES |= {"nul": insert(b"\0"), "utf8": insert(b"\xff\xfe", b"\xc3", b"\xed\xa0\x80")}
TEXT: dict[str, Callable[[Target], None]] = {
    name: lambda target, change=change: target.replace(change) for name, change in CHANGES.items()
}

# Other kinds of files


def make_fifo(target: Target) -> None:
    target.file.unlink()
    os.mkfifo(target.file)


def make_folder(target: Target) -> None:
    target.file.unlink()
    target.file.mkdir()


def make_sparse(target: Target) -> None:
    os.truncate(target.file, 8 * 2**30)


def link_to_copy(target: Target) -> None:
    copy = target.outside / "copy"
    shutil.copy(target.file, copy)
    target.link(copy)


SPECIAL: dict[str, Callable[[Target], None]] = {
    "fifo": make_fifo,
    "folder": make_folder,
    "sparse": make_sparse,
    "unreadable": lambda target: target.file.chmod(0),
    "zero-link": lambda target: target.link("/dev/zero"),
    "secret-link": lambda target: target.link(target.outside / "secret"),
    "folder-link": lambda target: target.link(target.outside / "folder"),
    "copy-link": link_to_copy,
    "dangling-link": lambda target: target.link(target.outside / "missing"),
    "link-loop": lambda target: target.link(target.file.name),
}
