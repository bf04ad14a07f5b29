"""The HTTP endpoints of qmd."""
