"""How the tools are reached: the doors, who gets in, and what carries out a call."""

from commonplace.server.sdk import load_lazily

load_lazily()
