"""What names mean: the fields that an expression over a relation can refer to, and how to rewrite the references.

A `Scope` stands beside an operator and knows aliases, which operators do not. Only references are ever rewritten, and
only where the physical column differs from what is written: `c.phone` becomes `phone`, a plain `phone` stays.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import UnknownColumn
from . import references
from .operators import Field
from .references import Reference
from .tokens import comparable, quote, slice_of, substitute, tokenise


@dataclass(frozen=True, slots=True)
class Use:
    """A resolved reference at text[start:end]: to a field, or to a name that stands for other text."""

    start: int
    end: int
    field: Field | None
    other: str | None = None
    rest: tuple[str, ...] = ()  # the struct fields that follow, not part of the range


@dataclass(frozen=True)
class Scope:
    """`fields` carry their qualifiers. `hidden` columns are found by a qualifier only; `star` is what `*` means."""

    fields: tuple[Field, ...]
    hidden: frozenset[str] = frozenset()
    star: tuple[str, ...] | None = None

    @property
    def visible(self) -> tuple[Field, ...]:
        """The fields of `*`, in order."""
        if self.star is None:
            return tuple(f for f in self.fields if f.column not in self.hidden)
        by_column = {f.column: f for f in self.fields}
        return tuple(by_column[column] for column in self.star)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(q for f in self.fields for q in f.qualifiers))

    @property
    def times(self) -> tuple[str, ...]:
        """How the event times in scope are written, for messages."""
        found = []
        for field in self.fields:
            name = quote(field.name)
            prefix = f"{quote(field.qualifiers[0])}." if len(self._named(field.name)) > 1 and field.qualifiers else ""
            if field.lag is not None:
                found.append(prefix + name)
            elif field.window is not None:
                found.append(f"{prefix}{name}.start")
        return tuple(found)

    @property
    def physical(self) -> Scope:
        """The same fields under their physical names: the scope of texts that are already rewritten."""
        return Scope(tuple(replace(f, name=f.column, qualifiers=()) for f in self.fields))

    def _named(self, name: str) -> list[Field]:
        return [f for f in self.fields if f.name.lower() == name.lower()]

    def qualified(self, qualifier: str) -> tuple[Field, ...]:
        """The fields of `qualifier.*`."""
        found = tuple(f for f in self.fields if qualifier.lower() in f.qualifiers)
        if not found:
            raise UnknownColumn(
                f"there is no stream or alias `{qualifier}` here",
                where=f"{qualifier}.*",
                fix=suggest(qualifier, self.qualifiers, "the names in scope are"),
            )
        return found

    def uses(
        self,
        text: str,
        *,
        first: Mapping[str, str] | None = None,
        last: Mapping[str, str] | None = None,
        outside: Sequence[tuple[int, int, str]] = (),
    ) -> list[Use]:
        """Every reference, resolved. `first` and `last` give other names (lower case) before and after the columns.

        Ranges of `outside` are left out: they are replaced as a whole.
        """
        found = []
        for reference in references.find(text):
            if any(start <= reference.start < end for start, end, _ in outside):
                continue
            use = self._resolve(reference, text, first or {}, last or {})
            if use is not None:
                found.append(use)
        return found

    def _resolve(self, ref: Reference, text: str, first: Mapping[str, str], last: Mapping[str, str]) -> Use | None:
        head = ref.parts[0].lower()

        def use(consumed: int, field: Field | None, other: str | None = None) -> Use:
            return Use(ref.start, ref.spans[consumed - 1][1], field, other, ref.parts[consumed:])

        if len(ref.parts) > 1:
            inside = [f for f in self.fields if head in f.qualifiers]
            matches = [f for f in inside if f.name.lower() == ref.parts[1].lower()]
            if len(matches) > 1:
                raise UnknownColumn(
                    f"`{'.'.join(ref.parts[:2])}` is ambiguous",
                    where=text,
                    fix="give the columns different names below",
                )
            if matches:
                return use(2, matches[0])
            if inside and not self._named(head):
                names = [f.name for f in inside]
                fix = suggest(ref.parts[1], names, f"the columns of {ref.parts[0]} are")
                raise UnknownColumn(f"`{ref.parts[0]}` has no column `{ref.parts[1]}`", where=text, fix=fix)
        if head in first:
            return use(1, None, head)
        matches = [f for f in self.fields if f.column not in self.hidden and f.name.lower() == head]
        if len(matches) > 1:
            choices = [f"{quote(f.qualifiers[0])}.{quote(f.name)}" for f in matches if f.qualifiers]
            fix = f"write {' or '.join(choices)}" if choices else "name the inputs with AS or alias(...) and qualify it"
            raise UnknownColumn(f"`{ref.parts[0]}` is ambiguous", where=text, fix=fix)
        if matches:
            return use(1, matches[0])
        if head in last:
            return use(1, None, head)
        if ref.soft:
            return None
        if len(ref.parts) > 1:
            known = [*self.qualifiers, *(f.name for f in self.fields)]
            fix = suggest(ref.parts[0], known, "the names in scope are")
            raise UnknownColumn(f"there is no stream, alias or column `{ref.parts[0]}` here", where=text, fix=fix)
        names = [f.name for f in self.visible]
        raise UnknownColumn(
            f"there is no column `{ref.parts[0]}` here", where=text, fix=suggest(ref.parts[0], names, "the columns are")
        )

    def rewrite(
        self,
        text: str,
        *,
        first: Mapping[str, str] | None = None,
        last: Mapping[str, str] | None = None,
        column: Callable[[Field], str] | None = None,
    ) -> str:
        """The text over physical columns, without comments at its ends, which would eat what is put behind it."""
        text = slice_of(text, tokenise(text))
        names = {**(last or {}), **(first or {})}
        changes = []
        for use in self.uses(text, first=first, last=last):
            if use.other is not None:
                changes.append((use.start, use.end, names[use.other]))
            elif use.field is not None:
                changes.append((use.start, use.end, column(use.field) if column else use.field.column))
                changes[-1] = (use.start, use.end, written_as(text[use.start : use.end], changes[-1][2]))
        return substitute(text, changes)

    def field_of(self, text: str) -> Field | None:
        """The field, when the text is a plain reference to one."""
        use = self._whole(text)
        return use.field if use is not None and not use.rest else None

    def _whole(self, text: str) -> Use | None:
        """The only reference of a text that is nothing but a dotted name."""
        tokens = tokenise(text)
        found = references.find(text)
        if len(found) != 1 or not tokens or (found[0].start, found[0].end) != (tokens[0].start, tokens[-1].end):
            return None
        uses = self.uses(text)
        return uses[0] if uses else None

    def time_of(self, text: str) -> tuple[int | None, tuple[int, int] | None]:
        """(lag, window) of the field that the text would become: both None when it is neither."""
        from . import calls

        use = self._whole(text)
        if use is not None and use.field is not None:
            field, rest = use.field, tuple(r.lower() for r in use.rest)
            if not rest:
                return field.lag, field.window
            if field.window is not None and rest in (("start",), ("end",)):
                return field.window[rest == ("end",)], None
            return None, None
        call = calls.exactly(text)
        if call is not None and call.name == "window_time" and len(call.args) == 1:
            field_or_none = self.field_of(call.args[0])
            if field_or_none is not None and field_or_none.window is not None:
                return field_or_none.window[1], None
        return None, None

    def canonical(self, text: str, last: Mapping[str, str] | None = None) -> list[tuple[str, int, int]]:
        """(comparable, start, end) per token, a reference being one: what group expressions are compared by."""
        uses = {use.start: use for use in self.uses(text, last=last) if use.field is not None}
        result: list[tuple[str, int, int]] = []
        for token in tokenise(text):
            if result and token.start < result[-1][2]:
                continue
            use = uses.get(token.start)
            if use is not None and use.field is not None:
                result.append(("\0" + use.field.column.lower(), use.start, use.end))
            else:
                result.append((comparable(token), token.start, token.end))
        return result

    def aliased(self, name: str | None) -> Scope:
        """Every visible field under one alias (or none)."""
        qualifiers = (name.lower(),) if name else ()
        visible = tuple(replace(f, qualifiers=qualifiers) for f in self.visible)
        return Scope(visible)


def written_as(written: str, column: str) -> str:
    """What stands for a physical column: the user's own text if it already names it."""
    tokens = tokenise(written)
    if len(tokens) == 1 and tokens[0].name.lower() == column.lower():
        return written
    return quote(column)


def suggest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Did you mean …?"""
    known = list(dict.fromkeys(known))
    lower = {k.lower(): k for k in known}
    close = [lower[m] for m in difflib.get_close_matches(name.lower(), list(lower), n=1)]
    if close:
        return f"did you mean `{close[0]}`?"
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"{otherwise} {shown}" if known else "there are no columns in scope"


def bare(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Fields as operators hold them: without qualifiers."""
    return tuple(replace(f, qualifiers=()) for f in fields)
