"""Exports of other programs as interchange records: one reader per format, each knowing nothing of the store."""
