"""The text of a run: training files, held-out files, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import xxhash

from workbench.config import ConfigError, DataConfig
from workbench.datasets.sources import Found, Listing, path_files, stdlib_files
from workbench.datasets.stream import MappedReader, MemoryReader, Reader, Stream, TextFile

CHUNK = 1 << 20


@dataclass(frozen=True)
class ManifestEntry:
    """One row of the data manifest.

    Attributes
    ----------
    path : str
        Name within the source.
    start, bytes : int
        First byte, and how many.
    digest : int
        xxh3-64 of those bytes.
    split : str
        ``train`` or ``heldout``.
    """

    path: str
    start: int
    bytes: int
    digest: int
    split: str


class Text:
    """Files of a source, split into training and held-out text.

    Parameters
    ----------
    files : tuple of TextFile
        In the order of their names.
    reader : Reader
    warnings : tuple of str
        What was passed over, and why.

    Attributes
    ----------
    train, heldout : Stream
    warnings : tuple of str
    """

    def __init__(self, files: tuple[TextFile, ...], reader: Reader, warnings: tuple[str, ...] = ()) -> None:
        self._reader = reader
        self.train = Stream([file for file in files if file.split == "train"], reader)
        self.heldout = Stream([file for file in files if file.split == "heldout"], reader)
        self.warnings = warnings
        self._shards: dict[int, tuple[Stream, ...]] = {}

    def shard(self, learner: int, learners: int) -> Stream:
        """Training files of one learner with ``shards = "file"``.

        Files go from the largest to the smallest (ties by the hash of the name) to the learner with the fewest
        bytes so far.  A learner added later reads the files of learner ``m mod learners``.

        Parameters
        ----------
        learner, learners : int
            Who, and the number of learners that the run was planned for.
        """
        if learners not in self._shards:
            hands: list[list[TextFile]] = [[] for _ in range(learners)]
            sizes = [0] * learners
            for file in sorted(self.train.files, key=lambda file: (-file.size, name_hash(file.name), file.name)):
                least = sizes.index(min(sizes))
                hands[least].append(file)
                sizes[least] += file.size
            self._shards[learners] = tuple(Stream(hand, self._reader) for hand in hands)
        return self._shards[learners][learner % learners]

    @cached_property
    def manifest(self) -> tuple[ManifestEntry, ...]:
        """Path, bytes, digest and split of every file, made on first use in one pass over the text."""
        files = sorted(self.train.files + self.heldout.files, key=lambda file: (file.name, file.start))
        return tuple(ManifestEntry(file.name, file.start, file.size, self._digest(file), file.split) for file in files)

    def _digest(self, file: TextFile) -> int:
        state = xxhash.xxh3_64()
        for offset in range(0, file.size, CHUNK):
            state.update(self._reader.read(file, offset, min(CHUNK, file.size - offset)))
        return state.intdigest()


def name_hash(name: str) -> int:
    """xxh3-64 of a file's name: an order that has nothing to do with what is in the file."""
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogateescape"))


def open_text(config: DataConfig) -> Text:
    """Open the text that ``config`` names.

    Of several files every ``holdout_every``-th, in the order of the hashes of their names, is held out.  Of a
    single file the last ``1 / holdout_every`` of the bytes is.

    Parameters
    ----------
    config : DataConfig

    Returns
    -------
    Text
        Files of ``source = "path"`` are mapped, never read whole, so that they may be larger than the memory.

    Raises
    ------
    ConfigError
        Nothing there, nothing readable, or nothing in it.
    """
    if config.source == "stdlib":
        listing, contents = _stdlib()
        return Text(split_files(listing.files, config.holdout_every), MemoryReader(contents), listing.warnings)
    listing = path_files(config.path)
    return Text(split_files(listing.files, config.holdout_every), MappedReader(), listing.warnings)


def split_files(files: tuple[Found, ...], holdout_every: int) -> tuple[TextFile, ...]:
    """Assign each file, or each part of a single file, to ``train`` or ``heldout`` (see `open_text`).

    Raises
    ------
    ConfigError
        A single file is too small to hold anything out.
    """
    if len(files) == 1:
        return _split_bytes(files[0], holdout_every)
    ranked = sorted(files, key=lambda file: (name_hash(file.name), file.name))
    held = {file.name for file in ranked[::holdout_every]}
    return tuple(
        TextFile(file.name, file.location, 0, file.size, "heldout" if file.name in held else "train") for file in files
    )


def _split_bytes(file: Found, holdout_every: int) -> tuple[TextFile, ...]:
    tail = file.size // holdout_every
    if tail == 0:
        raise ConfigError(
            f"{file.location} has {file.size} bytes, of which data.holdout_every = {holdout_every} holds out none; "
            "expected a longer text; give another (--data PATH)"
        )
    return (
        TextFile(file.name, file.location, 0, file.size - tail, "train"),
        TextFile(file.name, file.location, file.size - tail, tail, "heldout"),
    )


@lru_cache(maxsize=1)
def _stdlib() -> tuple[Listing, dict[str, np.ndarray]]:
    """Standard library's files and their bytes, read once per process (about 12 MB)."""
    listing = stdlib_files()
    return listing, {file.location: np.fromfile(file.location, dtype=np.uint8) for file in listing.files}
