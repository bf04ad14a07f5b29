"""Packages of documents: declared in `context.json`, described by `manifest.json`, read from folders, archives, web
servers and repositories."""
