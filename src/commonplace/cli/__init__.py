"""The command line: thin commands over the Library. `main` is the entry point."""

from commonplace.cli.loading import nothing_collected

with nothing_collected():
    from commonplace.cli.main import main

__all__ = ["main"]
