"""What reading PDF files costs, by the reader in its process and by pypdf alone, and how many words each finds.

    python bench/pdfs.py DIR       every .pdf below DIR

Time is CPU time, of the reader with its process and that one's start. Words are runs of letters and digits.
"""

from __future__ import annotations

import io
import logging
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from commonplace.ingest.files import pdf

_WORD = re.compile(r"[^\W_]+")


def by_reader(data: bytes) -> list[str]:
    return list(pdf.read_pdf(io.BytesIO(data)).pages)


def by_pypdf(data: bytes) -> list[str]:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    return [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]


def spent() -> float:
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def row(name: str, files: list[bytes], read: Callable[[bytes], list[str]]) -> str:
    started, pages, words, refused = spent(), 0, 0, 0
    for data in files:
        try:
            texts = read(data)
        except Exception:  # noqa: BLE001 - encrypted, or damaged in one of many ways
            refused += 1
            continue
        pages += len(texts)
        words += sum(len(_WORD.findall(text)) for text in texts)
    pdf._workers().close()
    return f"| {name} | {len(files):,} | {refused:,} | {pages:,} | {words:,} | {spent() - started:.2f} s |"


def main() -> None:
    files = [path.read_bytes() for path in sorted(Path(sys.argv[1]).rglob("*.pdf"))]
    print("| read by | files | refused | pages | words | CPU |\n|---|---|---|---|---|---|")
    print(row("the reader", files, by_reader))
    print(row("pypdf", files, by_pypdf))


if __name__ == "__main__":
    main()
