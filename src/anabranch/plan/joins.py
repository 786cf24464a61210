"""Joins: which inputs meet on which keys, within which time, and what is left for Spark to check.

A join of m inputs whose equalities give one key to all of them is one stage (Cape's m-way join, L1). Otherwise it is a
chain: the inputs that share a key first, their result with the others next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.errors import MissingEventTime, UnboundedJoin, UnsupportedQuery
from anabranch.kernels.specs import TIME, Compare, JoinInput, JoinSpec, TimeBound
from anabranch.plan.conditions import FLIP, Bound, Comparison, Reader, classes, same_text
from anabranch.plan.implied import composed
from anabranch.plan.pending import Pending, Placed, plain, written
from anabranch.plan.physical import Branch, Column, Filter, Port, Stage
from anabranch.plan.typer import Typer
from anabranch.plan.types import TIMES, check_key, common_key, is_numeric, micros, normalised, quoted
from anabranch.query.operators import Item

MOST_INPUTS = 5


@dataclass
class Read:
    """The conjuncts of a join, sorted."""

    reader: Reader
    equalities: list[Comparison] = field(default_factory=list)
    bounds: list[tuple[Bound, str]] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def read(inputs: Sequence[Pending], conditions: Sequence[str], typer: Typer) -> Read:
    owner = {column.lower(): i for i, p in enumerate(inputs) for column in p.types}
    found = Read(Reader(owner, [p.times for p in inputs], typer))
    for conjunct in conditions:
        parts = found.reader.comparisons(conjunct)
        if not parts or any(len(c.left_inputs) != 1 or len(c.right_inputs) != 1 for c in parts):
            bounds = [found.reader.bound(c) for c in parts]
            if parts and all(bounds):
                found.bounds += [(b, conjunct) for b in bounds if b is not None]
            else:
                found.rest.append(conjunct)
            continue
        for c in parts:
            bound = found.reader.bound(c)
            if c.left_inputs == c.right_inputs:
                if conjunct not in found.rest:
                    found.rest.append(conjunct)
            elif bound is not None:
                found.bounds.append((bound, conjunct))
            elif c.op == "=":
                found.equalities.append(c)
                windows = found.reader.window_bound(c)
                if windows is not None:
                    found.bounds.append((windows, conjunct))
            else:
                found.comparisons.append(c)
    return found


def key_classes(found: Read) -> list[list[tuple[int, str]]]:
    pairs = []
    for c in found.equalities:
        (i,), (j,) = c.left_inputs, c.right_inputs
        pairs.append(((i, same_text(c.left)), (j, same_text(c.right))))
    return classes(pairs)


def first_to_meet(found: Read, count: int) -> list[int] | None:
    """The inputs to join first when no key is common to all; None when all go at once."""
    groups = [sorted({i for i, _ in g}) for g in key_classes(found)]
    if count <= 2 or any(len(g) == count for g in groups) or not groups:
        return None
    return max(groups, key=len)


class JoinBuilder:
    """One stage of a join."""

    def __init__(
        self, id: str, inputs: Sequence[Pending], conditions: Sequence[str], names: Sequence[str], typer: Typer
    ) -> None:
        if len(inputs) > MOST_INPUTS:
            raise UnsupportedQuery(f"a join of {len(inputs)} streams", fix="join at most five, or chain two queries")
        self.id = id
        self.inputs = inputs
        self.names = names  # for messages
        self.typer = typer
        self.found = read(inputs, conditions, typer)
        self.all_types = {c: t for p in inputs for c, t in p.types.items()}
        self.rest = list(self.found.rest)
        self.notes: list[str] = []
        self.columns: list[dict[str, tuple[str, str]]] = [{} for _ in inputs]  # name -> (text, type)

    def build(self, needed: Callable[[str], bool]) -> tuple[Stage, Pending, int]:
        """The stage, what it gives, and how far its times reach (for the end of a finite input)."""
        times = self._times()
        reach, bounds = self._reach(times)
        keys = self._keys()
        compares = self._compares()
        payload = self._payload(needed)
        count = len(self.inputs)
        ports = []
        spec_inputs = []
        outputs: list[tuple[int, str, Column]] = []  # input, column there, column of the result
        for i, pending in enumerate(self.inputs):
            wanted = {c: (quoted(c), t) for c, t in payload[i].items()} | self.columns[i]
            time = plain(written(times[i]))
            if time in payload[i] and time not in self.columns[i]:
                del wanted[time]  # it travels as _t already, to the microsecond
            outputs += [(i, c if c in wanted else TIME, Column(c, t)) for c, t in payload[i].items()]
            columns = tuple(Column(name, type) for name, (_, type) in wanted.items())
            lag = max(reach[i][j] + self.inputs[j].times[times[j]] for j in range(count) if j != i)
            ports.append(
                Port(
                    pending.branches, written(times[i]), self._type(i, written(times[i])), None, tuple(wanted[k[i]][0]
                    if k[i] in wanted else quoted(k[i]) for k in keys), columns, tuple(Item(text, name) for name,
                    (text, _) in wanted.items()), lag, )
            )  # fmt: skip
            spec_inputs.append(JoinInput(tuple(k[i] for k in keys), tuple(c.name for c in columns)))
        spec = JoinSpec(tuple(spec_inputs), bounds, compares, tuple((i, c, column.name) for i, c, column in outputs))
        after = tuple(Filter(text) for text in dict.fromkeys(self.rest))
        self.notes += [f"after the join, in Spark: {f.condition}" for f in after]
        stage = Stage(
            self.id, "join", spec, tuple(ports), tuple(column for _, _, column in outputs), after, 0,
            notes=tuple(self.notes),
        )  # fmt: skip
        extent = max((abs(v) for row in reach for v in row), default=0)
        return stage, self._after(stage, times, reach, keys), extent

    # -- time --------------------------------------------------------------------------------------------------

    def _times(self) -> list[str]:
        """Each input's event time: the one its bounds speak of, else its first."""
        used = [(b.i, b.time_i) for b, _ in self.found.bounds] + [(b.j, b.time_j) for b, _ in self.found.bounds]
        chosen = []
        for i, pending in enumerate(self.inputs):
            if not pending.times:
                raise MissingEventTime(
                    f"{self.names[i]} is joined with a stream but has no event time",
                    fix="give ab.stream(..., event_time='column'), and keep that column up to the join",
                )
            mine = [t for k, t in used if k == i]
            chosen.append(max(mine, key=mine.count) if mine else next(iter(pending.times)))
        return chosen

    def _reach(self, times: list[str]) -> tuple[list[list[int]], tuple[TimeBound, ...]]:
        """reach[i][j]: the most that t[j] - t[i] can be; and the bounds for the kernel."""
        count = len(self.inputs)
        far: list[list[int | None]] = [[0 if i == j else None for j in range(count)] for i in range(count)]

        def tighten(i: int, j: int, value: int) -> None:
            known = far[i][j]
            far[i][j] = value if known is None else min(known, value)

        for bound, conjunct in self.found.bounds:
            chosen = times[bound.i] == bound.time_i and times[bound.j] == bound.time_j
            if not (bound.exact and chosen) and conjunct not in self.rest:
                self.rest.append(conjunct)
            if not chosen:
                slack_i = self.inputs[bound.i].gaps, bound.time_i, times[bound.i]
                slack_j = self.inputs[bound.j].gaps, bound.time_j, times[bound.j]
                early_i, late_i = _slack(*slack_i)
                early_j, late_j = _slack(*slack_j)
                if bound.high is not None and early_j is not None and late_i is not None:
                    tighten(bound.i, bound.j, bound.high + early_j + late_i)
                if bound.low is not None and early_i is not None and late_j is not None:
                    tighten(bound.j, bound.i, -bound.low + early_i + late_j)
                continue
            if bound.high is not None:
                tighten(bound.i, bound.j, bound.high)
            if bound.low is not None:
                tighten(bound.j, bound.i, -bound.low)
        for k in range(count):
            for i in range(count):
                for j in range(count):
                    a, b = far[i][k], far[k][j]
                    if a is not None and b is not None and i != j:
                        tighten(i, j, a + b)
        reach: list[list[int]] = []
        for i in range(count):
            row = []
            for j in range(count):
                value = far[i][j]
                if value is None:
                    raise UnboundedJoin(
                        f"nothing says how much later than {self.names[i]} a row of {self.names[j]} may come, so the "
                        "join's state would grow for ever",
                        where=f"join of {', '.join(self.names)}",
                        fix=f"bound the times on both sides, e.g. {shown(times[j])} BETWEEN {shown(times[i])} - "
                        f"INTERVAL 60 SECONDS AND {shown(times[i])} + INTERVAL 60 SECONDS",
                    )
                row.append(value)
            reach.append(row)
        bounds = tuple(TimeBound(i, j, -reach[j][i], reach[i][j]) for i in range(count) for j in range(i + 1, count))
        return reach, bounds

    # -- keys and comparisons ----------------------------------------------------------------------------------

    def _keys(self) -> list[list[str]]:
        """Per key: its column on each input. Equalities that are not keys of all become comparisons."""
        count = len(self.inputs)
        keys: list[list[str]] = []
        used: set[tuple[int, str]] = set()
        for group in key_classes(self.found):
            first: dict[int, str] = {}
            for i, text in group:
                first.setdefault(i, text)
            if len(first) < count:
                continue
            texts = [self._text(i, first[i]) for i in range(count)]
            types = [self._type(i, texts[i]) for i in range(count)]
            type = self._common(texts, types)
            keys.append([self._prepare(i, texts[i], types[i], type, "_k", len(keys), key=True) for i in range(count)])
            used |= set(first.items())
        for c in self.found.equalities:
            (i,), (j,) = c.left_inputs, c.right_inputs
            if (i, same_text(c.left)) not in used or (j, same_text(c.right)) not in used:
                self.found.comparisons.append(c)
        return keys

    def _text(self, input: int, canonical: str) -> str:
        for c in self.found.equalities:
            if (input,) == tuple(c.left_inputs) and same_text(c.left) == canonical:
                return c.left
            if (input,) == tuple(c.right_inputs) and same_text(c.right) == canonical:
                return c.right
        return canonical

    def _type(self, input: int, text: str) -> str:
        return self.typer.types(self.inputs[input].types, [text])[0]

    def _common(self, texts: Sequence[str], types: Sequence[str]) -> str:
        for text, kind in zip(texts, types, strict=True):
            check_key(text, kind)
        common = common_key(texts[0], list(types))
        if common is None:
            raise UnsupportedQuery(
                f"the key {' = '.join(map(shown, texts))} compares {' with '.join(types)}",
                fix="cast one side, e.g. CAST(x AS STRING) = y, so that both are of one type",
            )
        return common or self.typer.types(self.all_types, [f"coalesce({', '.join(texts)})"])[0]

    def _prepare(self, i: int, text: str, have: str, want: str, prefix: str, n: int, key: bool = False) -> str:
        """A prepared column of input i; the payload's own where nothing has to be computed."""
        expression = text if have == want else f"CAST(({text}) AS {want})"
        if key:
            expression = normalised(expression if have != want else f"({text})", want)
        own = plain(text)
        if own is not None and own in self.inputs[i].types and have == want and expression in (text, f"({text})"):
            self.columns[i].setdefault(own, (quoted(own), want))
            return own
        name = f"{prefix}{n}"
        self.columns[i][name] = (expression, want)
        return name

    def _compares(self) -> tuple[Compare, ...]:
        compares = []
        for n, c in enumerate(self.found.comparisons):
            (i,), (j,) = c.left_inputs, c.right_inputs
            left, right = self._type(i, c.left), self._type(j, c.right)
            if left in TIMES and left == right:
                a = self._prepare(i, micros(c.left, left), "bigint", "bigint", "_c", n)
                b = self._prepare(j, micros(c.right, right), "bigint", "bigint", "_d", n)
            elif (left == right and _orderable(left)) or (is_numeric(left) and is_numeric(right)):
                want = left if left == right else self._common([c.left, c.right], [left, right])
                a = self._prepare(i, c.left, left, want, "_c", n)
                b = self._prepare(j, c.right, right, want, "_d", n)
            else:
                if c.conjunct not in self.rest:
                    self.rest.append(c.conjunct)
                continue
            compares.append(Compare(i, a, c.op, j, b) if i < j else Compare(j, b, FLIP[c.op], i, a))
        return tuple(compares)

    # -- what comes out ----------------------------------------------------------------------------------------

    def _payload(self, needed: Callable[[str], bool]) -> list[dict[str, str]]:
        from anabranch.query.references import references

        checked = {r for text in self.rest for r in references(text)}
        found = [{c: t for c, t in p.types.items() if needed(c) or c.lower() in checked} for p in self.inputs]
        if not any(found):  # a count needs rows, if no column
            column, type = next(iter(self.inputs[0].types.items()))
            found[0][column] = type
        return found

    def _after(self, stage: Stage, times: list[str], reach: list[list[int]], keys: list[list[str]]) -> Pending:
        count = len(self.inputs)
        types = {c.name: c.type for c in stage.output}
        lags: dict[str, int] = {}
        base = []
        for i in range(count):
            own = [self.inputs[j].times[times[j]] + max(reach[i][j], 0) for j in range(count)]
            base.append(max(own))
        for i in range(count):
            for time in self.inputs[i].times:
                early, _ = _slack(self.inputs[i].gaps, time, times[i])
                if time == times[i]:
                    lags[time] = base[i]
                elif early is not None:
                    lags[time] = base[i] + max(early, 0)
        gaps = composed([p.gaps for p in self.inputs], times, [tuple(p.times) for p in self.inputs], reach)
        placed = None
        if keys:
            equal = []
            for key in keys:
                names = {plain(self.columns[i][key[i]][0]) for i in range(count) if key[i] in self.columns[i]}
                equal.append(frozenset(n for n in names if n is not None and n in types))
            kinds = tuple(next(c.type for c in stage.ports[0].columns if c.name == k[0]) for k in keys)
            placed = Placed(stage.id, tuple(equal), kinds)
        return Pending((Branch((), stage=stage.id),), types, lags, gaps, placed)


def shown(time: str) -> str:
    """A physical name as the user would write it."""
    return time.replace("__", ".", 1)


def _slack(gaps: Mapping[tuple[str, str], int], a: str, b: str) -> tuple[int | None, int | None]:
    """How much earlier than b, and how much later than b, the time a can be."""
    if a == b:
        return 0, 0
    return gaps.get((a, b)), gaps.get((b, a))


def _orderable(type: str) -> bool:
    return is_numeric(type) or type in ("string", "date", "boolean", "binary")
