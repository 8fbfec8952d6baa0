"""The exceptions of Mangrove: one class for each remedy, so that a program catches by what it can do.

``kind`` names the cause (``"Timeout"``, ``"DuplicateId"``, ...). ``reason`` tells errors of one kind apart, such as why a transaction
was aborted; it is ``None`` for most.
"""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """The base of all errors of the database."""

    #: The cause: the name of an error kind.
    kind: str
    #: Tells errors of one kind apart; ``None`` for most.
    reason: Optional[str]

    def __init__(self, message: str, kind: str = "Bug", reason: Optional[str] = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason

    def __reduce__(self) -> tuple[type, tuple[str, str, Optional[str]]]:
        return (type(self), (str(self), self.kind, self.reason))


class ConflictError(Error):
    """Another transaction changed what this one reads or writes. Run the transaction again, from its beginning."""


class RetryLaterError(Error):
    """A limit was reached, the query was cancelled, or a service cannot be reached. Try again later, or raise the limit."""


class RequestError(Error, ValueError):
    """The request is wrong and would fail again. Change it."""


class ClosedError(Error):
    """The handle is closed, or another process has the database open. Open another handle, or stop the other process."""


class OutcomeUnknownError(Error):
    """The log failed during a commit. Look whether the transaction was committed before running it again."""


class CommittedError(Error):
    """The transaction was committed, and its results could not be delivered. Do not run it again."""


class DamagedError(Error):
    """A file of the database is damaged, or was written by a version that this one does not know. Restore a backup."""


class InternalError(Error):
    """Mangrove has a bug. Please report it."""
