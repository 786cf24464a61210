"""Every error a user can meet, one class per kind of mistake.

A message says what was wrong, where, and what to do. All of them are raised before anything is written
that would have to be taken back. Nothing in here imports anything: every package may raise these.
"""


class AnabranchError(Exception):
    """The root of every error that Anabranch raises on purpose."""

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what = what
        self.where = where
        self.fix = fix
        lines = [what]
        if where:
            lines.append(f"  where: {where}")
        if fix:
            lines.append(f"  to do: {fix}")
        super().__init__("\n".join(lines))


class QueryError(AnabranchError):
    """The query cannot be built as written."""


class UnknownColumn(QueryError):
    """A column, stream or alias that does not exist, or is ambiguous."""


class MissingEventTime(QueryError):
    """An operator needs an event time that its input does not have."""


class UnboundedJoin(QueryError):
    """A stream-stream join without time bounds would keep its state for ever."""


class UnsupportedQuery(QueryError):
    """Outside the supported shape of SQL or of the builder; the message names the nearest thing that works."""


class SettingError(AnabranchError):
    """An option or setting has a value that makes no sense."""


class SessionError(AnabranchError):
    """The Spark session or machine lacks something (Java, worker Python, a core setting)."""


class CheckpointError(AnabranchError):
    """The checkpoint cannot be used."""


class CheckpointMismatch(CheckpointError):
    """The checkpoint belongs to another query or to incompatible settings."""


class UnknownFormat(CheckpointError):
    """The checkpoint was written in a format this version does not know."""


class CheckpointDamaged(CheckpointError):
    """A manifest or segment is missing, truncated or altered."""


class SinkError(AnabranchError):
    """The output cannot be written as asked."""


class QueryFailed(AnabranchError):
    """A running query stopped on an error that is not one of the above."""
