"""Notes, media, chats, characters and prompts: what they are made of, how they are found and how they are read.

Begin with `kinds.py` (names, ids, times, fields) and `knowledge.py` (`Knowledge`: what a library does with them).
`records.py` takes items in and gives them out, each shaped by `kinds.py` (notes), `media.py`, `conversations.py` or
`cards_and_prompts.py`; `drawer.py` has their rows in the store. `item_search.py` finds items: `item_scores.py` scores
them, `item_snippets.py` makes hits. `item_reading.py` and `retrieval.py` read them. `tools/` has the knowledge profile
and, in `research.py`, the other one.
"""
