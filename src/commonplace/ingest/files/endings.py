"""The files that a folder's collection takes by default, by the endings of their names.

A module of its own: what a collection takes is asked by searches, which read no files.
"""

from __future__ import annotations

_READ = (
    "md markdown mdx txt rst org html htm xhtml ipynb pdf epub docx py pyi ts mts cts tsx js mjs cjs jsx go rs java c h"
)
"""Endings of files that have a reader of their own."""
PLAIN = (
    "cpp cc cxx hpp hh hxx cs swift kt kts scala rb php pl pm lua r jl dart ex exs erl hs ml mli clj fs groovy gradle "
    "m mm zig nim proto graphql tf cmake vue svelte sh bash zsh fish ps1 bat awk css scss sass less sql json jsonc "
    "yaml yml toml ini cfg conf properties xml csv tsv tex bib adoc"
)
"""Endings of files whose text is kept as it is, and cut at blank lines."""
_CAPITALS = "MD TXT HTM HTML PDF EPUB DOCX CSV XML JSON R"
"""Endings that people and their programs write in capitals, too: globs tell them apart."""
_NAMES = (
    "README,LICENSE,NOTICE,CHANGELOG,AUTHORS,CONTRIBUTING,INSTALL,TODO,Dockerfile,Containerfile,Makefile,makefile,"
    "GNUmakefile,Jenkinsfile,Vagrantfile,Procfile,Gemfile,Rakefile,Brewfile,Justfile,justfile"
)
"""Files of text without an ending."""
DEFAULT_PATTERN = f"**/*.{{{','.join([*_READ.split(), *PLAIN.split(), *_CAPITALS.split()])}}},**/{{{_NAMES}}}"
