"""Run folder as seen by ranks other than 0."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from mrn.runs.metrics import Row
from mrn.runs.open_folder import OpenFolder
from mrn.utils.errors import UserError


class NullRunDir:
    """Run folder of ranks other than 0, which write only their share of checkpoints."""

    rows: Sequence[Row] = ()

    def __init__(self, path: Path) -> None:
        """Use a folder that rank 0 may not have created yet."""
        self.path, self._folder = path, ExitStack()

    def check(self) -> None:
        """Check that the folder is still that of `begin`; see `RunDir.check`."""
        self._opened.check()

    def begin(self, rows: list[Row] | None) -> int:
        """Open the folder, which rank 0 has locked.

        Raises:
            UserError: This machine does not see the folder.
        """
        try:
            self._opened = self._folder.enter_context(closing(OpenFolder(self.path)))
        except OSError as error:
            raise UserError(
                f"this machine cannot read {self.path}: {error.strerror}; put the run folder on "
                "storage that all machines share"
            ) from None
        return 0

    def log(self, row: Row) -> None:
        """Do nothing."""

    def log_cycle(self, row: Row) -> None:
        """Do nothing."""

    def __enter__(self) -> "NullRunDir":
        """Return the run folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""
        self._folder.close()
