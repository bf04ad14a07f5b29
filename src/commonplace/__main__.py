"""`python -m commonplace` is the `commonplace` command."""

from commonplace.cli import main

main()
