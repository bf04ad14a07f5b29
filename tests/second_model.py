"""A second real model for tests: the shipped one, cut to half its dimensions, in a folder of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from commonplace.models.static import SHIPPED

DIMS = 128


def second_model(folder: Path, name: str = "second") -> str:
    """Its vectors cannot be taken for the shipped one's: they are of another length."""
    target = folder / name
    target.mkdir(parents=True)
    for file in ("tokenizer.json", "scales.npy"):
        shutil.copy(SHIPPED / file, target / file)
    np.save(target / "codes.npy", np.load(SHIPPED / "codes.npy")[:, :DIMS])
    card = json.loads((SHIPPED / "card.json").read_text("utf-8"))
    (target / "card.json").write_text(json.dumps(card | {"name": name, "version": name, "dims": DIMS}), "utf-8")
    return str(target)
