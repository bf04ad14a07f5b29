"""What embedding costs here: `python tools/time_embedder.py [NAME]`. CPU time: wall time is the neighbours' too."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import platformdirs

from commonplace.models import DEFAULT, open_embedder
from commonplace.models.onnx import OnnxEmbedder

WORDS = (
    "the",
    "pump",
    "moves",
    "water",
    "from",
    "one",
    "tank",
    "into",
    "another",
    "while",
    "a",
    "valve",
    "at",
    "night",
)
QUERY = "which valve keeps the pressure steady"


def passage(tokens: int, seed: int) -> str:
    """A text of about so many tokens, each of these words being one."""
    return " ".join(np.random.default_rng(seed).choice(WORDS, tokens - 2))


def cpu_ms(call: Callable[[], object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times * 1000


def rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def batches(embedder: OnnxEmbedder, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> None:
    """What a batch would cost and do to the vectors: the reason for one text per run."""
    network: Any = embedder._loaded()
    ids = np.array([network.tokens.framed(passage(256, seed))[:250] for seed in range(8)])
    alone = np.stack([network.vector(row) for row in ids])
    for size in sizes:
        start, rows = time.process_time(), []
        for first in range(0, len(ids), size):
            part = ids[first : first + size]
            feed = {"input_ids": part, "attention_mask": np.ones_like(part), "token_type_ids": np.zeros_like(part)}
            rows.append(network.session.run([network.output], feed)[0])
        cost = (time.process_time() - start) / len(ids) * 1000
        found = np.concatenate(rows)
        pooled = found[:, 0] if network.pooling == "cls" else found.mean(axis=1)
        cosines = (pooled * alone).sum(axis=1) / np.linalg.norm(pooled, axis=1)
        print(f"batch of {size}: {cost:.1f} ms per passage, least cosine to the vector alone {cosines.min():.4f}")


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    before = rss_mb()
    embedder = open_embedder(name, platformdirs.user_cache_path("commonplace") / "models", threads=1)
    print(
        f"{name}: load {cpu_ms(embedder.warm, 1):.0f} ms CPU, {rss_mb() - before:.0f} MB more, {rss_mb():.0f} MB in all"
    )
    queries = iter(f"{QUERY} {number}" for number in range(100))
    print(f"query: {cpu_ms(lambda: embedder.embed_queries([next(queries)]), 30):.2f} ms")
    print(f"query asked again: {cpu_ms(lambda: embedder.embed_queries([QUERY]), 30):.3f} ms")
    texts = [passage(256, seed) for seed in range(10)]
    print(f"256-token passage: {cpu_ms(lambda: embedder.embed_passages(texts), 1) / len(texts):.1f} ms")
    print(f"2,000-token text: {cpu_ms(lambda: embedder.embed_passages([passage(2000, 0)]), 1):.1f} ms")
    print(f"most memory: {rss_mb():.0f} MB")
    if isinstance(embedder, OnnxEmbedder):
        batches(embedder)


if __name__ == "__main__":
    main()
