"""`python -m commonplace.qmd.cli` is the `qmd` command."""

from commonplace.qmd.cli.program import main

main()
