"""Errors that crossed Spark: found again and given back as what they were."""

from __future__ import annotations

import re

from anabranch import errors

OURS = re.compile(r"anabranch\.errors\.(\w+): (.*?)(?=\n\s*(?:at |Traceback|\[|JVM|Driver stack|$)|\Z)", re.DOTALL)


def as_ours(error: BaseException) -> errors.AnabranchError:
    """The AnabranchError inside, or one that says which error stopped the query."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, errors.AnabranchError):
            return seen
        seen = seen.__cause__
    text = str(error)
    found = OURS.search(text)
    if found:
        kind = getattr(errors, found.group(1), None)
        if isinstance(kind, type) and issubclass(kind, errors.AnabranchError):
            return _rebuilt(kind, found.group(2).strip())
    if "PYTHON_VERSION_MISMATCH" in text or re.search(r"No module named '?(anabranch|pyarrow|duckdb)", text):
        return errors.SessionError(
            "Spark's workers run a Python that cannot run Anabranch",
            where=_first_line(text, "No module named|PYTHON_VERSION_MISMATCH"),
            fix="set spark.pyspark.python (or PYSPARK_PYTHON) to an interpreter with anabranch on every worker",
        )
    condition = re.search(r"\[([A-Z][A-Z_.]+)\] ([^\n]+)", _innermost(text))
    if condition:
        what = f"[{condition.group(1)}] {condition.group(2)}"
    else:  # an error of the user's function, say: a KeyError is only its key
        what = f"{type(error).__name__}: {text.strip().partition(chr(10))[0][:500]}"
    failed = errors.QueryFailed("the query stopped on an error", where=what, fix="correct it and start the query again")
    failed.__cause__ = error
    return failed


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Spark's own stop broke off what was running."""
    while error is not None:
        if re.search(r"InterruptedException|cancelled part of cancelled job group", str(error)):
            return True
        error = error.__cause__
    return False


def _innermost(text: str) -> str:
    """Spark wraps what happened in STREAM_FAILED and the like; the last condition that is not a wrapper tells more."""
    found = list(re.finditer(r"\[([A-Z][A-Z_.]+)\] [^\n]+", text))
    inner = [m.group(0) for m in found if m.group(1) not in ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")]
    return inner[0] if inner else text


def _rebuilt(kind: type[errors.AnabranchError], text: str) -> errors.AnabranchError:
    parts: dict[str, str] = {}
    what = []
    for line in text.splitlines():
        match = re.match(r"\s+(where|to do): (.*)", line)
        if match:
            parts["where" if match.group(1) == "where" else "fix"] = match.group(2)
        elif not parts:
            what.append(line)
    return kind("\n".join(what), where=parts.get("where"), fix=parts.get("fix"))


def _first_line(text: str, pattern: str) -> str:
    return next((line.strip() for line in text.splitlines() if re.search(pattern, line)), "")[:300]
