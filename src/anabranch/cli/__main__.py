"""`python -m anabranch.cli` is the `anabranch` command."""

from anabranch.cli import main

main()
