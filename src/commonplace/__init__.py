"""Commonplace: one local engine that keeps what an agent may need to look up."""

__version__ = "0.1.0"
