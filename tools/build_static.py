"""Make the table that ships in `commonplace.models.static` from the original weights: `python tools/build_static.py`.

Pulls potion-base-8m through the catalogue (or takes its folder as the one argument), writes int8 codes, scales, a
compact tokenizer and the card, and prints how near the shipped vectors are to the original ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from commonplace.models import STATIC, cache, catalog
from commonplace.models.pull import pull
from commonplace.models.static import SHIPPED, Table, open_table, quantize

ORIGINAL = "potion-base-8m"


def build(source: Path, target: Path) -> None:
    """Write the four files; the same input gives the same bytes."""
    table = quantize(np.asarray(open_table(source / "model.safetensors").codes, np.float32))
    np.save(target / "codes.npy", table.codes)
    np.save(target / "scales.npy", _scales(table))
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    compact = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (target / "tokenizer.json").write_text(compact, encoding="utf-8")
    cache.write_card(target, dataclasses.replace(catalog()[ORIGINAL].card, name=STATIC, version=_version(target)))


def _scales(table: Table) -> np.ndarray:
    if table.scales is None:
        raise TypeError("a quantised table has scales")
    return table.scales


def _version(target: Path) -> str:
    """A hash over the files that decide the vectors."""
    digest = hashlib.sha256()
    for name in ("codes.npy", "scales.npy", "tokenizer.json"):
        digest.update((target / name).read_bytes())
    return digest.hexdigest()[:16]


def report(source: Path, target: Path) -> str:
    """The cosine of each row before and after."""
    before = np.asarray(open_table(source / "model.safetensors").codes, np.float32)
    table = open_table(target / "codes.npy")
    after = table.codes.astype(np.float32) * _scales(table)[:, None]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = (before * after).sum(axis=1) / np.maximum(lengths, 1e-12)
    return f"{len(cosines)} rows, cosine to the original: mean {cosines.mean():.6f}, least {cosines.min():.6f}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(sys.argv[1]) if len(sys.argv) > 1 else pull(ORIGINAL, Path(folder))
        build(source, SHIPPED)
        print(report(source, SHIPPED))


if __name__ == "__main__":
    main()
