"""Models that others serve over HTTP: Ollama, whatever speaks OpenAI's way, Azure, Anthropic, and servers that rerank.

Only addresses that the user named, or that a provider's name stands for, are ever connected to; no redirect is
followed, no proxy is looked up, and nobody is contacted before the first call that needs an answer.
"""
