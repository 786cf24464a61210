"""Drawn aggregates and frames, with every function in every form whose answer is determinate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.property import values
from tests.property.relations import Col, Rel, Text, either
from tests.property.values import DOUBLE, LONG, Kind

Made = tuple[str, Col]  # the call and the column it becomes
ARRAY = Kind("o", "array", (), False, True)


def _numeric(kind: Kind) -> bool:
    return kind.adds or kind.letter in "mx"


def _sum_kind(kind: Kind) -> Kind:
    """Sums are compared, and summed again where they are small whole numbers or dyadic."""
    if kind.type.startswith("decimal"):
        return Kind("e", "decimal of a sum", (), False)
    return DOUBLE if kind.floats else LONG


def _special(kind: Kind) -> bool:
    return kind.letter in "dfw"


def call(q: Text, rel: Rel, time: str) -> Made | None:
    """One aggregate call."""
    rng = q.rng
    name = rng.choice(CALLS)
    q_filter = ""
    if rng.random() < 0.2 and (col := rel.pick(rng)) is not None and name != "first":
        q_filter = f" FILTER (WHERE {values.predicate(rng, col.name, col.kind)})"
    made = BUILDERS[name](q, rel, time)
    if made is None:
        return None
    text, kind, exact, unordered = made
    q.features.add(f"aggregate {name}")
    if q_filter:
        q.features.add("filter")
    letter = kind.letter if kind.letter != "o" else "o"
    return text + q_filter if name != "first" else text, Col(q.fresh(letter), kind, exact, unordered)


Spec = tuple[str, Kind, bool, bool]
CALLS = (
    "count(*)", "count", "count distinct", "sum", "sum distinct", "avg", "min", "max", "moments", "min_by", "max_by",
    "first", "collect_list", "collect_set", "median", "percentile", "percentiles", "percentile_cont", "count_if",
    "bool",
)  # fmt: skip


def _count(q: Text, rel: Rel, time: str) -> Spec | None:
    cols = [c for c in (rel.pick(q.rng), rel.pick(q.rng)) if c is not None]
    names = sorted({c.name for c in cols[: q.rng.randint(1, 2)]})
    return (f"count({', '.join(names)})", LONG, True, False) if names else None


def _count_distinct(q: Text, rel: Rel, time: str) -> Spec | None:
    made = _count(q, rel, time)
    return (made[0].replace("count(", "count(DISTINCT "), LONG, True, False) if made else None


def _sum(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng, adds=True)
    return (f"sum({col.name})", _sum_kind(col.kind), True, False) if col else None


def _sum_distinct(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng, adds=True)
    return (f"sum(DISTINCT {col.name})", _sum_kind(col.kind), True, False) if col else None


def _avg(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng, adds=True)
    if col is None:
        return None
    decimal = col.kind.type.startswith("decimal")
    return (
        f"avg({col.name})",
        Kind("e", "decimal of an average", ()) if decimal else replace(DOUBLE, adds=False),
        True,
        False,
    )


def _extreme(name: str) -> Callable[[Text, Rel, str], Spec | None]:
    def build(q: Text, rel: Rel, time: str) -> Spec | None:
        col = rel.pick(q.rng, flat=True)
        if col is None:
            return None
        # Which of 0.0 and -0.0 is met first is not determinate: it is added to 0.0.
        if _special(col.kind):
            return f"{name}({col.name} + 0.0D)", Kind("w", "double", (), False, False, True), True, False
        return f"{name}({col.name})", col.kind, True, False

    return build


def _moments(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng, adds=True)
    name = q.rng.choice(["stddev", "stddev_samp", "stddev_pop", "var_samp", "var_pop", "variance", "std"])
    return (f"{name}({col.name})", DOUBLE, False, False) if col else None


def _by(name: str) -> Callable[[Text, Rel, str], Spec | None]:
    """Ordered by what tells rows apart, so that there are no ties."""

    def build(q: Text, rel: Rel, time: str) -> Spec | None:
        col = rel.pick(q.rng)
        if col is None or not rel.unique:
            return None
        if len(rel.unique) == 1 and rel.unique[0] not in rel.windows and not rel.kind_of(rel.unique[0]).nested:
            order = rel.unique[0]
        else:
            order = "concat_ws('|', " + ", ".join(f"coalesce(CAST({u} AS STRING), '~')" for u in rel.unique) + ")"
        return f"{name}({col.name}, {order})", col.kind, True, False

    return build


def _first(q: Text, rel: Rel, time: str) -> Spec | None:
    """By event time, which Spark's own first is not: the oracle asks for min_by."""
    col = rel.pick(q.rng)
    if col is None or not rel.spaced:
        return None
    last = q.rng.random() < 0.5
    by = "max_by" if last else "min_by"
    name = q.rng.choice(["last", "last_value"] if last else ["first", "first_value", "any_value"])
    if q.rng.random() < 0.4:
        ours, where = f"{name}({col.name}, true)", f" FILTER (WHERE {col.name} IS NOT NULL)"
    else:
        ours, where = f"{name}({col.name})", ""
    return either(ours, f"{by}({col.name}, {time}){where}"), col.kind, True, False


def _collect(name: str) -> Callable[[Text, Rel, str], Spec | None]:
    def build(q: Text, rel: Rel, time: str) -> Spec | None:
        col = rel.pick(q.rng)
        return (f"{name}({col.name})", ARRAY, True, True) if col else None

    return build


def _collect_set(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng, floats=False)
    name = q.rng.choice(["collect_set(", "collect_list(DISTINCT "])
    return (f"{name}{col.name})", ARRAY, True, True) if col else None


def _quantile(form: str, kind: Kind) -> Callable[[Text, Rel, str], Spec | None]:
    def build(q: Text, rel: Rel, time: str) -> Spec | None:
        col = rel.pick(q.rng, adds=True)
        if col is None:
            return None
        name = f"{col.name} + 0.0D" if _special(col.kind) else col.name
        p = q.rng.choice(["0.5", "0", "1", "0.3", "0.95"])
        return form.format(name, p), kind, False, False

    return build


def _count_if(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng)
    return (f"count_if({values.predicate(q.rng, col.name, col.kind)})", LONG, True, False) if col else None


def _bool(q: Text, rel: Rel, time: str) -> Spec | None:
    col = rel.pick(q.rng)
    name = q.rng.choice(["bool_and", "bool_or", "every", "any", "some"])
    return (f"{name}({values.predicate(q.rng, col.name, col.kind)})", values.TRUTH, True, False) if col else None


BUILDERS: dict[str, Callable[[Text, Rel, str], Spec | None]] = {
    "count(*)": lambda q, rel, time: (q.rng.choice(["count(*)", "count(1)"]), LONG, True, False),
    "count": _count, "count distinct": _count_distinct, "sum": _sum, "sum distinct": _sum_distinct, "avg": _avg,
    "min": _extreme("min"), "max": _extreme("max"), "moments": _moments, "min_by": _by("min_by"),
    "max_by": _by("max_by"), "first": _first, "collect_list": _collect("collect_list"), "collect_set": _collect_set,
    "median": _quantile("median({})", DOUBLE), "percentile": _quantile("percentile({}, {})", DOUBLE),
    "percentiles": _quantile("percentile({}, array({}, 0.5, 1.0))", ARRAY),
    "percentile_cont": _quantile("percentile_cont({1}) WITHIN GROUP (ORDER BY {0})", DOUBLE),
    "count_if": _count_if, "bool": _bool,
}  # fmt: skip


def aggregate(q: Text, rel: Rel) -> Rel:
    """GROUP BY keys and a window, or a window below, or an event time; HAVING sometimes."""
    rng = q.rng
    time = rng.choice(rel.times)
    keys = []
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        col = rel.pick(rng)
        if col is not None and col.name not in [k.name for k in keys] and col.name not in rel.times:
            keys.append(col)
    known = [w for w in rel.windows if f"{w}.start" in rel.times]
    form = rng.choice(["window", "window", "window", "window", "time"] + ["struct", "window of window"] * bool(known))
    window = rng.choice(known) if form in ("struct", "window of window") else ""
    size = rng.choice([1, 4, 5, 10, 15])
    slide = rng.choice([size, size, max(1, size // 2), min(size, 4), 1 if size < 10 else 5])
    offset = rng.choice([0, 0, 0, 1, -1, 3]) if slide > 3 else 0
    over = window if form == "window of window" else time
    parts = [over, f"'{size} seconds'"] + [f"'{slide} seconds'"] * (slide != size or offset != 0)
    parts += [f"'{offset} seconds'"] * (offset != 0)
    group = {"time": time, "struct": window}.get(form, f"window({', '.join(parts)})")
    aliased = [k for k in keys if rng.random() < 0.2 and k.kind.type == "string"]
    key_texts = [f"upper({k.name})" if k in aliased else k.name for k in keys]
    made = [m for m in (call(q, rel, time) for _ in range(rng.randint(1, 5))) if m is not None]
    having = f" HAVING count(*) {rng.choice(['> 1', '< 3', '>= 1'])}" if rng.random() < 0.25 else ""
    cols = [Col(q.fresh(k.kind.letter), k.kind) for k in keys]
    items = [f"{t} AS {c.name}" for t, c in zip(key_texts, cols, strict=True)]
    mark = q.fresh("w")
    if form == "time":
        items.append(f"{time} AS {mark}")
        times, windows, shown = (mark,), (), [Col(mark, q.time)]
    else:
        items.append(f"{window if form == 'struct' else 'window'} AS {mark}")
        times, windows, shown = (f"{mark}.start", f"{mark}.end"), (mark,), []
    items += [f"{text} AS {col.name}" for text, col in made]
    rng.shuffle(items)
    q.features.add(f"group by {form}")
    q.features.add("aggregate after a stateful operator" if rel.stateful else "aggregate")
    for what, used in (("having", having), ("keys", keys), ("sliding", slide != size), ("offset", offset)):
        q.features |= {what} if used else set()
    result = Rel("", (*cols, *shown, *(c for _, c in made)), times, (*(c.name for c in cols), mark), not keys, False,
                 windows, True)  # fmt: skip
    groups = [*key_texts, group]
    rng.shuffle(groups)
    return q.step(f"SELECT {', '.join(items)} FROM {rel.name} GROUP BY {', '.join(groups)}{having}", result)


# -- frames -----------------------------------------------------------------------------------------------------------

OVER = ("count(*)", "count", "sum", "avg", "min", "max", "moments", "first_value", "last_value", "collect_list", "lag")


def frame(q: Text, rel: Rel) -> Rel:
    """All columns and some calls over the rows before; the order is complete up to rows that are equal."""
    rng = q.rng
    assert rel.unique
    key = rel.pick(rng)
    partition = f"PARTITION BY {key.name} " if key is not None and rng.random() < 0.85 else ""
    time = rng.choice(rel.times)
    order = f"ORDER BY {time}, {rel.tie()}"
    made = [m for m in (_over(q, rel) for _ in range(rng.randint(1, 3))) if m is not None]
    if not made:
        return rel
    items = ["*"]
    for text, col, rows in made:
        preceding = rng.choice([0, 1, 2, 3, 50])
        end = rng.choice(["CURRENT ROW", "CURRENT ROW", f"{min(preceding, rng.randint(0, 2))} PRECEDING"])
        frame = f" ROWS BETWEEN {preceding} PRECEDING AND {end}" if rows else ""
        items.append(f"{text} OVER ({partition}{order}{frame}) AS {col.name}")
    q.features.add("frame after a stateful operator" if rel.stateful else "frame")
    result = replace(
        rel, cols=(*rel.cols, *(c for _, c, _ in made)), unique=() if rel.doubles else rel.unique,
        spaced=rel.spaced and not rel.doubles, stateful=True, times=(time,),
    )  # fmt: skip
    return q.step(f"SELECT {', '.join(items)} FROM {rel.name}", result)


def _over(q: Text, rel: Rel) -> tuple[str, Col, bool] | None:
    rng = q.rng
    name = rng.choice(OVER)
    adds = name in ("sum", "avg", "moments")
    col = rel.pick(rng, adds=adds, flat=name in ("min", "max"))
    if col is None:
        return None
    q.features.add(f"frame {name}")
    if name == "count(*)":
        return "count(*)", Col(q.fresh("n"), LONG), True
    if name == "lag":
        n = rng.choice(["", ", 1", ", 2", ", 3"])
        return f"lag({col.name}{n})", Col(q.fresh(col.kind.letter), col.kind), False
    if name == "moments":
        text = f"{rng.choice(['stddev_samp', 'stddev_pop', 'var_samp', 'var_pop'])}({col.name})"
        return text, Col(q.fresh("v"), DOUBLE, False), True
    if name == "collect_list":
        return f"collect_list({col.name})", Col(q.fresh("o"), ARRAY, True, True), True
    kind = {"count": LONG, "sum": _sum_kind(col.kind), "avg": replace(DOUBLE, adds=False)}.get(name, col.kind)
    if name == "avg" and col.kind.type.startswith("decimal"):
        kind = Kind("e", "decimal of an average", ())
    if name in ("min", "max") and _special(col.kind):
        return f"{name}({col.name} + 0.0D)", Col(q.fresh("w"), Kind("w", "double", (), False, False, True)), True
    ignore = name in ("first_value", "last_value") and rng.random() < 0.4
    text = f"{name}({col.name})" + (" IGNORE NULLS" if ignore else "")
    return text, Col(q.fresh(kind.letter), kind), True
