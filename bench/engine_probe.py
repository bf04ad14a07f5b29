"""What a fresh process sees: the CPU it takes to answer for the first time, and the memory it holds while answering.

Run by bench/engine.py. Arguments: home, what (`lexical`, `hybrid` or `model`), queries as JSON.
"""

import time

started = time.process_time()

import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from commonplace.library import Library  # noqa: E402
from commonplace.settings import Settings  # noqa: E402

imported = time.process_time()


def memory() -> dict[str, float]:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    names = {"rss_mb": "VmRSS", "peak_mb": "VmHWM", "anon_mb": "RssAnon", "mapped_mb": "RssFile"}
    return {key: round(int(fields[name].split()[0]) / 1024, 1) for key, name in names.items()}


def main() -> None:
    home, what, queries = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    bare = memory()["rss_mb"]
    prepared = time.process_time()
    library = Library.open(home, settings=Settings(home=home))
    opened = time.process_time()
    aside = 0.0
    if what != "lexical":
        from engine_home import ClusterEmbedder, query_vectors

        embedder = ClusterEmbedder(query_vectors(8, 7))
        library.embedding._opened = ((embedder.name, embedder),)
        aside = time.process_time() - opened
    mode = "lexical" if what == "lexical" else "auto"
    page = library.search(queries[0], mode=mode)
    answered = time.process_time()
    assert page.hits
    if what == "model":
        from commonplace.models import open_embedder

        embedder = open_embedder(None, library.settings.models, threads=2)
        for query in queries:
            embedder.embed_queries([query])
    for query in queries:
        library.search(query, mode=mode)
    report = {
        "interpreter_s": started,
        "imports_s": imported - started,
        "open_s": opened - prepared,
        "first_search_s": answered - opened - aside,
        "total_s": answered - aside,
        "imported_mb": bare,
        **memory(),
    }
    if what == "model":
        report["model"] = embedder.name
    print(json.dumps(report))


main()
