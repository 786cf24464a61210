"""Select lists: items with their names, stars expanded, and the projection they become.

`relation.py`, `aggregate.py` and `frames.py` share this; SQL and builder differ only in who cut the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UnknownColumn, UnsupportedQuery
from .operators import Field, Item, Operator, Select
from .scope import Scope, bare, suggest
from .tokens import closing, quote, slice_of, split, split_alias, tokenise, unquote


@dataclass(frozen=True)
class SelectItem:
    """An expression as written (or a field that a star stood for), its output name, and whether AS gave it."""

    text: str
    name: str
    aliased: bool = False
    field: Field | None = None


def expand(scope: Scope, items: Sequence[str]) -> list[SelectItem]:
    """The items one by one; every star becomes its fields."""
    result: list[SelectItem] = []
    for item in items:
        star = _star(scope, item)
        if star is not None:
            result += [SelectItem(quote(f.column), f.name, field=f) for f in star]
            continue
        text, alias = split_alias(item)
        if not text:
            raise UnsupportedQuery("an item of the select list is empty", where=item or ",", fix="remove the comma")
        result.append(SelectItem(text, alias or default_name(text), alias is not None))
    if not result:
        raise UnsupportedQuery("the select list is empty", fix="name at least one column")
    return result


def _star(scope: Scope, item: str) -> Sequence[Field] | None:
    """The fields of `*`, `c.*` and `* EXCEPT (a, b)`."""
    tokens = tokenise(item)
    left_out: list[str] = []
    if len(tokens) > 3 and tokens[-1].key == ")":
        at = next((i for i, t in enumerate(tokens) if t.key == "EXCEPT" and i and tokens[i - 1].key == "*"), None)
        if at is not None:
            left_out = [slice_of(item, part) for part in split(tokens[at + 2 : -1])]
            tokens = tokens[:at]
    if not tokens or tokens[-1].key != "*" or len(tokens) not in (1, 3):
        return None
    if len(tokens) == 1:
        fields = scope.visible
    elif tokens[1].key == "." and tokens[0].is_name:
        fields = scope.qualified(tokens[0].name)
    else:
        return None
    names = {unquote(name).lower() for name in left_out}
    for name in left_out:
        if unquote(name).lower() not in {f.name.lower() for f in fields}:
            known = [f.name for f in fields]
            raise UnknownColumn(
                f"there is no column `{unquote(name)}`", where=item, fix=suggest(name, known, "there are")
            )
    return [f for f in fields if f.name.lower() not in names]


def default_name(text: str) -> str:
    """What a column is called that nobody named: a reference's last part, else the text."""
    tokens = tokenise(text)
    if tokens[0].key == "WINDOW" and len(tokens) > 1 and tokens[1].key == "(" and closing(tokens, 1) == len(tokens) - 1:
        return "window"
    dotted = all(t.is_name if i % 2 == 0 else t.key == "." for i, t in enumerate(tokens))
    return tokens[-1].name if dotted and len(tokens) % 2 else text


@dataclass(frozen=True)
class Output:
    """A column of a projection: text over physical columns, and the name it gets."""

    text: str
    name: str


def project(operator: Operator, scope: Scope, outputs: Sequence[Output]) -> tuple[Operator, Scope]:
    """A Select over the operator, left out when it would change nothing. `scope` is the operator's."""
    seen: dict[str, str] = {}
    for output in outputs:
        if output.name.lower() in seen:
            raise UnsupportedQuery(
                f"two output columns are called `{output.name}`",
                where=f"{seen[output.name.lower()]}, {output.text}",
                fix="give one another name with AS, leave one out, or join with USING",
            )
        seen[output.name.lower()] = output.text
    physical = scope.physical
    by_column = {f.column: f for f in scope.fields}
    shared = scope.fields[0].qualifiers if len({f.qualifiers for f in scope.fields}) == 1 else ()
    fields = []
    for output in outputs:
        lag, window = physical.time_of(output.text)
        source = physical.field_of(output.text)
        qualifiers = by_column[source.column].qualifiers if source is not None else shared
        fields.append(Field(output.name, output.name, qualifiers, lag, window))
    result = Scope(tuple(fields))
    if [f.column for f in operator.fields] == [output.name for output in outputs] and all(
        physical.field_of(o.text) is not None and unquote(o.text) == o.name for o in outputs
    ):
        return operator, result
    items = tuple(Item(output.text, output.name) for output in outputs)
    return Select(bare(fields), operator, items), result


def extended(operator: Operator, scope: Scope, text: str, column: str) -> tuple[Operator, Field]:
    """The operator with one more column: how `window.start` becomes a physical column."""
    lag, window = scope.physical.time_of(text)
    field = Field(column, column, (), lag, window)
    items = tuple(Item(quote(f.column), f.column) for f in operator.fields)
    return Select((*operator.fields, field), operator, (*items, Item(text, column))), field


def lateral(texts: Mapping[str, str]) -> dict[str, str]:
    """Earlier items under their aliases, ready to stand in a later one."""
    result = {}
    for alias, text in texts.items():
        tokens = tokenise(text)
        simple = all(t.is_name if i % 2 == 0 else t.key == "." for i, t in enumerate(tokens))
        result[alias.lower()] = text if simple else f"({text})"
    return result
