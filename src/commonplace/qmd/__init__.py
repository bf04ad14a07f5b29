"""The drop-in for qmd: its tools, its command line and its HTTP endpoints."""
