"""Folders of files: which files are taken, how each becomes text, and how a collection follows its folder."""
