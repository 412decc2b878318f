"""The files of a folder, with sizes and ages: for counting files, or deleting them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rookery.io.location import local_path, scheme_of
from rookery.model import StorageError

Inode = tuple[int, int]  # the device, and the number on it


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as its folder lists it; the location is written as the folder's was."""

    location: str
    size: int
    modified: float  # seconds since 1970
    inode: Inode | None = None  # of a local file

    @property
    def name(self) -> str:
        """The last part of its location."""
        return self.location.rpartition("/")[2]


def list_folder(
    where: str, properties: Mapping[str, str] | None = None, *, recursive: bool = True, links: bool = True
) -> list[Listed]:
    """Return the files in a folder, and below it, hidden ones too; a folder that is not there is empty.

    Without *links*, symbolic links, and what they lead to, are skipped: under another name it may be a
    file that somebody needs.
    """
    where = where.rstrip("/")
    if scheme_of(where) is not None:
        from rookery.io.remote import list_details  # slow to import

        return list_details(where, properties or {}, recursive)
    folder = local_path(where)
    files: list[Listed] = []
    waiting, followed = [""], {os.path.realpath(folder)} if recursive else set()
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                for entry in entries:
                    if entry.is_symlink() and not links:
                        continue
                    place = f"{below}/{entry.name}" if below else entry.name
                    if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():
                        if recursive and (not entry.is_symlink() or _first_time(entry.path, followed)):
                            waiting.append(place)
                        continue
                    with suppress(FileNotFoundError):  # deleted since it was listed
                        stat = entry.stat(follow_symlinks=False)
                        inode = stat.st_dev, stat.st_ino
                        files.append(Listed(f"{where}/{place}", stat.st_size, stat.st_mtime, inode))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{where}: {error.strerror}", hint="check the folder's permissions") from error
    return sorted(files, key=lambda file: file.location)


def _first_time(link: str, followed: set[str]) -> bool:
    """Whether no link has led there yet: they may be circular."""
    real = os.path.realpath(link)
    known = real in followed
    followed.add(real)
    return not known
