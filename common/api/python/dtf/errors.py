"""The exceptions of dtf: one class for each exit code of its programs."""
from __future__ import annotations


class Error(Exception):
    """A failed call. Its text is a sentence: the failure, its place, and the next action.

    `code` is the exit code that dtf's programs have for it, so `sys.exit(error.code)` tells a script the same.
    """

    code: int = 70

    def __init__(self, message: str, code: int | None = None):
        super().__init__(message)
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class TrainingFailedError(Error):
    """A kernel rejected its data, or a value is not finite."""
    code = 1


class UsageError(Error, ValueError):
    """An argument is invalid."""
    code = 2


class BadDataError(Error, ValueError):
    """A file of data, or a checkpoint, is missing or damaged."""
    code = 65


class OutOfRangeError(Error):
    """A queue is closed, or a data set at its end."""
    code = 66


class UnavailableError(Error, ConnectionError):
    """A task can't be reached, was lost, or has no room."""
    code = 69


class InternalError(Error):
    """A bug in dtf: report it."""
    code = 70


class CannotWriteError(Error, OSError):
    """A file can't be written."""
    code = 73


class PermissionDeniedError(Error, PermissionError):
    """A certificate, a user or a file's rights."""
    code = 77


class InvalidArgumentError(Error, ValueError):
    """The graph, a feed, a fetch or a job's file is wrong; the message names the part."""
    code = 78


class DeadlineExceededError(Error, TimeoutError):
    """A deadline has passed; the message names the missing event."""
    code = 124


class ClosedError(Error, ValueError):
    """The object was closed before."""
    code = 2


_CLASSES: dict[int, type[Error]] = {
    each.code: each for each in (TrainingFailedError, UsageError, BadDataError, OutOfRangeError, UnavailableError, InternalError,
                                 CannotWriteError, PermissionDeniedError, InvalidArgumentError, DeadlineExceededError)}


def of_code(code: int, message: str) -> Error:
    """Returns the exception of an exit code."""
    return _CLASSES.get(code, Error)(message, code)
