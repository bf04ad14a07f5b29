"""The sets of tools that are served together, by name."""
