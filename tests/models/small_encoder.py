"""A whole n-gram model, small and real: a SentencePiece vocabulary and weights in the files a pulled one has."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIMS, INNER, PARTS = 8, 4, 17
PIECES = (
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    ("▁", -2.0, 1),
    ("▁tea", -3.0, 1),
    ("▁water", -3.5, 1),
    ("te", -4.0, 1),
    ("a", -4.5, 1),
    ("ter", -4.2, 1),
    ("w", -5.0, 1),
    ("<", -5.5, 1),
    (">", -5.6, 1),
    ("s", -5.7, 1),
    ("茶", -4.0, 1),
)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, value: int | float | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sentence_pieces(algorithm: int = 1) -> bytes:
    """A model file; characters stay as they are."""
    rows = (
        field(1, field(1, text.encode()) + field(2, score) + (field(3, kind) if kind != 1 else b""))
        for text, score, kind in PIECES
    )
    trainer = field(3, algorithm) + field(41, 1) + field(42, 2)
    return b"".join(rows) + field(2, trainer) + field(3, field(1, b"identity"))


def weights(seed: int = 7) -> dict[str, NDArray[Any]]:
    """Names and shapes as in the real file, in a hundredth of its size."""
    rng = np.random.default_rng(seed)

    def some(*shape: int) -> NDArray[Any]:
        return rng.normal(size=shape).astype(np.float32) / 2

    found: dict[str, NDArray[Any]] = {
        f"q{part + 1}": rng.integers(0, 64, (2, DIMS)).astype(np.uint8) for part in range(PARTS)
    }
    found |= {"scale": np.abs(some(PARTS)) / 10, "lo": some(PARTS), "eps": np.array(1e-6)}
    for size in (2, 3, 5):
        found |= {f"proj{size}": some(DIMS, INNER), f"proj_b{size}": some(INNER)}
        found |= {f"ln_g{size}": some(INNER), f"ln_b{size}": some(INNER)}
        for turn in (1, 2):
            found |= {f"w{turn}_{size}": some(size * INNER, INNER), f"b{turn}_{size}": some(INNER)}
    joined = DIMS + 3 * INNER
    found |= {"ln_g": some(joined), "ln_b": some(joined), "cnn_W": some(joined, DIMS), "cnn_b": some(DIMS)}
    found |= {"d0": some(DIMS, 6), "d1": some(6, 6), "p1": some(DIMS, 6), "d2": some(6, 5), "d3": some(5, DIMS)}
    return found | {"p3": some(6, DIMS)}


def write_model(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sp.model").write_bytes(sentence_pieces())
    np.savez_compressed(folder / "weights.npz", **weights())  # type: ignore[arg-type]
    return folder
