"""`python -m commonplace.cli.qmd` is the `qmd` command."""

from commonplace.cli.qmd.main import main

main()
