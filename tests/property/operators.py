"""One drawn operator on top of what is there. Each gives a new relation and notes what it used."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.property import values
from tests.property.relations import Col, Rel, Text
from tests.property.values import INT, LONG, Kind

SECONDS = (0, 1, 2, 5, 10, 30)


def where(q: Text, rel: Rel) -> Rel:
    col = rel.pick(q.rng)
    if col is None:
        return rel
    condition = values.predicate(q.rng, col.name, col.kind)
    q.features.add("where")
    return q.step(f"SELECT * FROM {rel.name} WHERE {condition}", rel)


def select(q: Text, rel: Rel) -> Rel:
    """Some columns and computed ones; what tells rows apart and the event times stay."""
    rng = q.rng
    kept = [c for c in rel.cols if c.name in rel.unique or c.name in rel.times or rng.random() < 0.7]
    items, cols = [c.name for c in kept], list(kept)
    for _ in range(rng.randint(0, 2)):
        col = rel.pick(rng)
        if col is not None:
            text, kind = rng.choice(values.expressions(col.name, col.kind))
            cols.append(Col(q.fresh(kind.letter), kind))
            items.append(f"{text} AS {cols[-1].name}")
    items += [w for w in rel.windows if w not in items]
    q.features.add("select")
    return q.step(f"SELECT {', '.join(items)} FROM {rel.name}", replace(rel, cols=tuple(cols)))


def union(q: Text, rels: list[Rel]) -> Rel:
    """UNION ALL on the columns whose kinds both have; a number says which side a row is from."""
    rng = q.rng
    first = rels[0]
    chosen: list[list[str]] = [[] for _ in rels]
    cols: list[Col] = []
    for col in first.cols:
        if col.name in first.windows:
            continue
        same = [
            [c for c in r.cols if c.kind == col.kind and c.name not in (*chosen[i], *r.times) and not c.unordered]
            for i, r in enumerate(rels)
        ]
        if col.name in first.unique or col.name in first.times or not all(same) or col.unordered:
            continue
        for i, found in enumerate(same):
            chosen[i].append(col.name if i == 0 else rng.choice(found).name)
        exact = all(c.exact for r, n in zip(rels, chosen, strict=True) for c in r.cols if c.name == n[-1])
        cols.append(Col(q.fresh(col.kind.letter), col.kind, exact))
    src, uid, ts = q.fresh("i"), q.fresh("s"), q.fresh("t")
    terms = []
    for i, r in enumerate(rels):
        key = "concat_ws('|', " + ", ".join(f"coalesce(CAST({u} AS STRING), '~')" for u in r.unique) + ")"
        key = key if r.unique else "'none'"
        names = [f"{a} AS {b.name}" for a, b in zip(chosen[i], cols, strict=True)]
        items = [f"{i} AS {src}", f"{key} AS {uid}", f"{rng.choice(r.times)} AS {ts}", *names]
        terms.append(f"SELECT {', '.join(items)} FROM {r.name}")
    q.features.add("union after a stateful operator" if any(r.stateful for r in rels) else "union")
    made = (Col(src, INT), Col(uid, values.TEXT), Col(ts, q.time), *cols)
    unique = (src, uid) if all(r.unique for r in rels) else ()
    result = Rel("", made, (ts,), unique, doubles=any(r.doubles for r in rels), stateful=any(r.stateful for r in rels))
    return q.step(" UNION ALL ".join(terms), result)


def static(q: Text, rel: Rel, name: str, columns: tuple[tuple[str, Kind], ...]) -> Rel:
    """Join with a static table: by a key, by more, or by nothing."""
    rng = q.rng
    keys = [(c, s) for c in rel.usable() for s, kind in columns if s != "sid" and kind == c.kind]
    how = rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
    conditions = []
    if keys:
        col, side = rng.choice(keys)
        conditions.append(f"x.{col.name} = st.{side}")
    if rng.random() < 0.3 or not keys:
        conditions.append("st.sid < 2")
    if rng.random() < 0.3 and (other := rel.pick(rng)) is not None:
        conditions.append(f"({values.predicate(rng, f'x.{other.name}', other.kind)})")
    fresh = [(s, Col(q.fresh(kind.letter), kind)) for s, kind in columns]
    items = ["x.*", *(f"st.{s} AS {c.name}" for s, c in fresh)]
    sid = fresh[0][1].name
    q.features.add(f"static {how.lower()} {'after' if rel.stateful else 'before'} a stateful operator")
    return q.step(
        f"SELECT {', '.join(items)} FROM {rel.name} x {how} {name} st ON {' AND '.join(conditions)}",
        replace(rel, cols=(*rel.cols, *(c for _, c in fresh)), unique=(*rel.unique, sid) if rel.unique else (),
                spaced=False),
    )  # fmt: skip


def join(q: Text, rels: list[Rel]) -> Rel:
    """Two to five inputs, on keys of all, in a chain, or on none, with time bounds along a tree."""
    rng = q.rng
    names = [f"j{i}" for i in range(len(rels))]
    times = [rng.choice(r.times) for r in rels]
    conditions = []
    for i in range(1, len(rels)):
        conditions.append(bound(rng, f"{names[rng.randrange(i)]}", names, times, i))
    shared = _shared(rels)
    form = rng.choice(["keys", "keys", "chain", "none"]) if shared else "none"
    if form == "none" and len(rels) > 2:
        form = "keys" if shared else "none"
    if form == "keys":
        shared.sort(key=lambda names: len(rels[0].kind_of(names[0]).pool) + rng.randint(0, 2))
        for columns in shared[: rng.choice([1, 1, 1, 2])]:
            for i in range(1, len(rels)):
                conditions.append(f"{names[rng.randrange(i)]}.{columns[0]} = {names[i]}.{columns[0]}")
    elif form == "chain":
        for i in range(1, len(rels)):
            column = rng.choice(shared)[0]
            conditions.append(f"{names[i - 1]}.{column} = {names[i]}.{column}")
    if rng.random() < 0.4:
        conditions.append(_further(rng, rels, names, shared))
        q.features.add("join with a further comparison")
    rng.shuffle(conditions)
    items, cols, unique, kept_times = [], list[Col](), list[str](), list[str]()
    for name, rel in zip(names, rels, strict=True):
        for col in rel.cols:
            keep = col.name in rel.unique or rng.random() < 0.6
            if keep and col.name not in rel.times:
                cols.append(replace(col, name=q.fresh(col.kind.letter)))
                items.append(f"{name}.{col.name} AS {cols[-1].name}")
                unique += [cols[-1].name] if col.name in rel.unique else []
        for time in rel.times:
            kept_times.append(q.fresh("t"))
            items.append(f"{name}.{time} AS {kept_times[-1]}")
            cols.append(Col(kept_times[-1], q.time))
        if any(u in (*rel.times, *rel.windows) for u in rel.unique):  # a window's start tells as much as the window
            unique.append(kept_times[-1])
    source = _source(rng, rels, names, conditions)
    q.features.add(f"join of {len(rels)}")
    q.features.add(f"join {form}")
    if any(r.stateful for r in rels):
        q.features.add("join after a stateful operator")
    everything = all(r.unique for r in rels)
    return q.step(
        f"SELECT {', '.join(items)} FROM {source}",
        Rel("", tuple(cols), tuple(kept_times), tuple(unique) if everything else (),
            doubles=any(r.doubles for r in rels), stateful=True),
    )  # fmt: skip


def _source(rng: Random, rels: list[Rel], names: list[str], conditions: list[str]) -> str:
    tables = [f"{r.name} {n}" for r, n in zip(rels, names, strict=True)]
    if rng.random() < 0.4:
        return f"{', '.join(tables)} WHERE {' AND '.join(conditions)}"
    later = [c for c in conditions if rng.random() < 0.2]
    on = [c for c in conditions if c not in later] or ["true"]
    parts = [tables[0]]
    for i in range(1, len(tables)):
        ready = [c for c in on if not any(f"{n}." in c for n in names[i + 1 :])]
        on = [c for c in on if c not in ready]
        parts.append(f"JOIN {tables[i]} ON {' AND '.join(ready) or 'true'}")
    return " ".join(parts) + (f" WHERE {' AND '.join(later)}" if later else "")


def bound(rng: Random, first: str, names: list[str], times: list[str], i: int) -> str:
    """A bound on both sides between one earlier input and input i."""
    a, b = f"{first}.{times[names.index(first)]}", f"{names[i]}.{times[i]}"
    low, high = sorted((rng.choice(SECONDS) * rng.choice([1, -1]), rng.choice(SECONDS) * rng.choice([1, 1, -1])))
    sign = lambda n: f"{'+' if n >= 0 else '-'} INTERVAL {abs(n)} SECONDS"  # noqa: E731
    forms = [
        f"{b} BETWEEN {a} {sign(low)} AND {a} {sign(high)}",
        f"{b} >= {a} {sign(low)} AND {b} <= {a} {sign(high)}",
        f"{b} >= {a} {sign(low)} AND {b} < {a} {sign(high + 1)}",
        f"{b} > {a} {sign(low - 1)} AND {a} {sign(high)} >= {b}",
        f"{b} - {a} >= INTERVAL '{low}' SECOND AND {b} - {a} < INTERVAL '{high + 1}' SECOND",
    ]
    return f"{a} = {b}" if rng.random() < 0.06 else rng.choice(forms)


def _shared(rels: list[Rel]) -> list[list[str]]:
    """Columns that all inputs have under one name and kind."""
    first = {c.name: c.kind for c in rels[0].usable()}
    found = []
    for name, kind in first.items():
        if name != "id" and all(any(c.name == name and c.kind == kind for c in r.usable()) for r in rels):
            found.append([name])
    return found


def _further(rng: Random, rels: list[Rel], names: list[str], shared: list[list[str]]) -> str:
    i, j = rng.sample(range(len(rels)), 2)
    flat = [c[0] for c in shared if not rels[0].kind_of(c[0]).nested]
    if flat and rng.random() < 0.7:
        column, op = rng.choice(flat), rng.choice(["<", "<=", ">", ">=", "<>", "!="])
        return f"{names[i]}.{column} {op} {names[j]}.{column}"
    a, b = rels[i].pick(rng), rels[j].pick(rng)
    if a is None or b is None:
        return "true"
    left = values.predicate(rng, f"{names[i]}.{a.name}", a.kind)
    right = values.predicate(rng, f"{names[j]}.{b.name}", b.kind)
    return f"(({left}) {rng.choice(['OR', 'AND'])} ({right}))"


__all__ = ["LONG", "join", "select", "static", "union", "where"]
