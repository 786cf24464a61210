"""What the compiler asks of Catalyst. `spark/` implements it; tests may too. Nothing is executed, only analysed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Schema = Mapping[str, str]  # physical column -> Spark's simple type string


class Typer(Protocol):
    def types(self, columns: Schema, texts: Sequence[str]) -> list[str]:
        """Types of expressions over these columns; raises QueryError (UnknownColumn, …) in the user's words."""

    def lookup(
        self, columns: Schema, static: str, how: str, condition: str, renames: Mapping[str, str]
    ) -> dict[str, str]:
        """The schema after a join with a static DataFrame; `renames` maps physical names to its columns."""

    def static_columns(self, static: str) -> tuple[str, ...]: ...

    def interval_us(self, text: str) -> int | None:
        """A constant day-time interval in microseconds, None if it is not one."""

    def number(self, text: str) -> float | None:
        """A constant number, None if it is not one."""
