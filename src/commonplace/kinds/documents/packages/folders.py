"""One sync for packages and for folders registered with `commonplace add`, which have an update of their own."""

from __future__ import annotations

from commonplace.errors import CommonplaceError
from commonplace.ingest.files.read import EMPTY
from commonplace.kinds.documents.folders.library_folders import Folders, Progress
from commonplace.kinds.documents.packages.holdings import Holding
from commonplace.kinds.documents.packages.outcome import SyncOutcome
from commonplace.kinds.documents.packages.reading import BLANK
from commonplace.kinds.documents.packages.sync import SyncOptions, SyncTarget, sync


def sync_holding(
    target: SyncTarget, folders: Folders, holding: Holding, options: SyncOptions, progress: Progress | None = None
) -> SyncOutcome:
    """Bring one collection level, package or folder, and return what was done, or the error that prevented it."""
    if holding.declaration is not None and not holding.folder:
        return sync(target, holding.declaration, options, progress)
    known = holding.declared
    outcome = SyncOutcome(known.alias, known.collection_id, reindexed=0 if options.force else None)
    try:
        report = folders.update(holding.folder, force=options.force, dry=options.dry, progress=progress)
    except CommonplaceError as error:
        outcome.error = str(error)
        outcome.total = target.store.parents("document").get(known.key, 0)
        return outcome
    outcome.added, outcome.updated, outcome.removed = report.added, report.updated, report.removed
    outcome.unchanged = 0 if options.force else report.unchanged
    outcome.reindexed = report.unchanged if options.force else None
    outcome.skipped = [(path, BLANK) for path, code in report.skipped if code == EMPTY]
    outcome.failed = [(path, f"The file is not taken ({code}).") for path, code in report.skipped if code != EMPTY]
    for path, what in report.warnings:
        outcome.warn(path, what)
    before = target.store.parents("document").get(known.key, 0)
    outcome.total = before + report.added - report.removed if options.dry else before
    return outcome
