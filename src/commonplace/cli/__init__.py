"""The command line: thin commands over the Library. `main` is the entry point."""

from commonplace.cli.main import main

__all__ = ["main"]
