"""A folder that is held open, to detect that another one took its place."""

import os
from pathlib import Path

from mrn.utils.errors import RunError


class OpenFolder:
    """Open folder. While it is open, no other folder can get its inode number."""

    def __init__(self, path: Path) -> None:
        """Open the folder.

        Raises:
            OSError: It does not exist or is not readable.
        """
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def is_current(self) -> bool:
        """Return whether the path still refers to this folder.

        Raises:
            OSError: The storage does not respond.
        """
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self.descriptor))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def check(self) -> None:
        """Check that the path still refers to this folder; call it before every write.

        Raises:
            RunError: It refers to another folder or to none, or the storage does not respond.
        """
        try:
            current = self.is_current()
        except OSError as error:
            raise RunError(f"cannot access {self.path}: {error.strerror}") from error
        if not current:
            raise RunError(
                f"{self.path} was removed, moved or replaced while this run was training; it "
                "stops and writes nothing more",
                resumable=False,
            )

    def close(self) -> None:
        """Close the folder."""
        os.close(self.descriptor)
