"""The command line: thin verbs over what the other packages do. `anabranch --help` lists them.

Nothing heavy is imported before a verb runs: `anabranch --version` answers without Spark.
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the `anabranch` command."""
    from anabranch.cli.app import run

    run()


__all__ = ["main"]
