"""The traits of a provider's embedder: asked of the model itself, once, and kept.

Scores need to know how alike a question and its answer usually are for a model, and how alike strangers. Nobody
publishes that, so a few questions with their answers are embedded when a model is first used on a machine.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from commonplace.models.embedder import Vectors

log = logging.getLogger(__name__)

PAIRS = (
    ("why does the database refuse new connections",
     "The database accepts at most a hundred connections; when all are in use, new ones are refused."),
    ("how is the database backed up at night",
     "Every night a job copies the database to a second disk and keeps the last seven backups."),
    ("how to speed up a slow query in the database",
     "A query that reads the whole table becomes fast once the database has an index on its column."),
    ("how to move the database to another server",
     "To move the database, stop writing, copy its files to the new server and change the address."),
    ("does a lack of iron in the blood cause tiredness",
     "Patients with too little iron in the blood feel tired, because less oxygen reaches the muscles."),
    ("does aspirin thin the blood of healthy patients",
     "In healthy patients aspirin keeps blood platelets from clumping, so that wounds bleed longer."),
    ("what blood pressure is too high for older patients",
     "For patients over seventy a blood pressure above 150 is treated, as it harms heart and kidneys."),
    ("how much sugar in the blood is a sign of diabetes",
     "Diabetes is diagnosed in patients whose blood sugar before breakfast is above 126 mg per decilitre."),
    ("when was the first railway line for passengers opened",
     "The first railway that carried passengers by steam was opened in England in 1825."),
    ("who built the longest railway tunnel in the mountains",
     "Swiss engineers built the longest railway tunnel, 57 kilometres under the mountains, until 2016."),
    ("how fast did the first railway engines run",
     "Early engines on the railway reached 46 kilometres an hour, faster than any horse."),
    ("why did the railway company close the small stations",
     "The railway company closed small stations in the sixties, since buses had taken their passengers."),
)  # fmt: skip
"""Questions and their answers in three fields, so that strangers have something in common, as in a real library."""

USUAL_WORTH = 0.06
"""Evidence times spread of the default model: what a good embedder's opinion weighs beside words."""
LEAST_SPREAD = 0.02
PLAINNESS = 0.45
"""The part of these plain pairs' distance above strangers that a real answer has, as it is for the catalog's models."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The length of a model's vectors, and the cosines a question has with its answer and with strangers."""

    dims: int
    related: float
    unrelated: float

    @property
    def evidence(self) -> float:
        """Return the weight of its cosine. A model that cannot tell a pair from strangers counts next to nothing."""
        spread = self.related - self.unrelated
        return USUAL_WORTH / spread if spread > LEAST_SPREAD else 0.1


def measure(questions: Vectors, answers: Vectors) -> Learned:
    """Return what the vectors of PAIRS say: the 95th percentile of strangers, and the median of pairs above it."""
    cosines = questions @ answers.T
    pairs = np.diagonal(cosines)
    strangers = cosines[~np.eye(len(PAIRS), dtype=np.bool_)]
    unrelated = float(np.percentile(strangers, 95))
    related = unrelated + max(PLAINNESS * (float(np.median(pairs)) - unrelated), LEAST_SPREAD)
    return Learned(questions.shape[1], round(related, 4), round(unrelated, 4))


def read_learned(path: Path) -> Learned | None:
    """Return what was kept, or None where nothing that can be used was."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        learned = Learned(int(record["dims"]), float(record["related"]), float(record["unrelated"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return learned if learned.dims > 0 and -1 <= learned.unrelated < learned.related <= 1 else None


def keep_learned(path: Path, learned: Learned, model: str) -> None:
    """Store what was learned. A folder that cannot be written costs asking again, and nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps({"model": model, **asdict(learned)}, indent=2), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        log.info("What was learned of %s is not kept: %s", model, error)
