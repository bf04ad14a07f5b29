"""Memories: entries in threads that agents store for each other, find again, revise, replace and let expire.

Begin with `entry.py` (the nouns) and `memories.py` (`Memories`: what a library does with them). `drawer.py` has their
rows in the store. `entry_writes.py` is what happens inside a transaction, `generation.py` makes vectors and summaries,
`entry_imports.py` takes entries from elsewhere, `metadata.py` reads conditions on their metadata and says which fields
are indexed, `word_query.py` and `ranked_lists.py` find them. `tools/` is the memory profile: `__init__` declares the
thirteen tools, `store_calls.py` and `search_calls.py` carry them out.
"""
