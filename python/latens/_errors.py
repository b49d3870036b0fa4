"""What can go wrong. Messages are those of the command line, but name options as Python does."""

from __future__ import annotations


class Error(Exception):
    """Any error of Latens."""


class ModelError(Error, ValueError):
    """Mistakes in a model, or in settings; the message shows each with its line."""

    file: str = ""
    #: Of the first mistake, counted from 1.
    line: int = 0
    column: int = 0
    #: All of them: line, column, message, help.
    mistakes: list[tuple[int, int, str, str | None]] = []


class RecordError(Error, ValueError):
    """A record that cannot be read or does not fit the model."""


class SettingError(Error, ValueError):
    """An argument or a setting that makes no sense."""


class FileError(Error, OSError):
    """A file or the folder of a fit that cannot be read or written."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Diverged(Error, ArithmeticError):
    """A solver or a simulation left the numbers that make sense."""


class FitWarning(UserWarning):
    """What to know before a result is used; the same lines are in `fit.warnings`."""
