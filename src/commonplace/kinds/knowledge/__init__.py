"""Notes, media, chats, characters and prompts: what they are made of, how they are found and how they are read."""

from commonplace.kinds.knowledge.knowledge import Knowledge

__all__ = ["Knowledge"]
