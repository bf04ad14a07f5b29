"""The folder of files that the recorded calls are about."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "ops/locks.md": """---
title: Distributed locks
tags: [ops, safety]
created: 2026-03-01
rating: 8
---
# Rules

- Leases last thirty seconds and are renewed every ten.
- Leader election needs fencing tokens, or a paused process writes
  after its lease ran out.

## Clocks

Never compare the clocks of two machines. See [[backups]].
""",
    "ops/backups.md": """# Backups

Copies leave the building every night. #ops

## Restore

A restore is tried each month.
""",
    "kitchen/bread.md": """# Bread

Sourdough needs a long cold proof.

## Baking

Forty minutes at 240 degrees, with steam.
""",
    "kitchen/tea.md": """# Tea

Oolong wants water just off the boil.

## Green tea

Eighty degrees, two minutes.
""",
    "code/retry.py": '''"""Repeat what failed."""


def retry(work, times=3):
    """Return what `work` returns, trying it again."""
    for _ in range(times):
        try:
            return work()
        except OSError:
            continue


class Backoff:
    def wait(self):
        return 2
''',
    "plain.txt": "The boiler in the cellar was repaired on Tuesday.\nThe invoice is in the blue folder.\n",
    "großes Heft.md": "# Großes Heft\n\nDie Wasserleitung wurde im März erneuert.\n",
}

CUES = [
    {"start_ms": 0, "end_ms": 4000, "text": "Welcome to the lecture on tides."},
    {"start_ms": 4000, "end_ms": 9000, "text": "The moon pulls the sea twice a day.", "speaker": "Ada"},
]

STOCK = {
    "products": [
        {"sku": "A1", "name": "Kettle", "price": 39.5, "text": "Boils water quickly and switches itself off."},
        {"sku": "B2", "name": "Teapot", "price": 24.0, "text": "Holds a litre and keeps it warm."},
        {"sku": "C3", "name": "Bread knife", "price": 18.0, "text": "A long blade with teeth for crusts."},
    ],
    "opening": {"mon": "9-17", "sat": "10-14"},
}


def write_files(folder: Path) -> Path:
    """Write the files below a folder and return it."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder
