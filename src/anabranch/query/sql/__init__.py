"""SQL text to operators: `syntax.py` cuts the statement into clauses, `build.py` gives them to `Relation`."""

from .build import parse

__all__ = ["parse"]
