"""Folders of files as collections of documents: registered, walked, compared and watched."""
