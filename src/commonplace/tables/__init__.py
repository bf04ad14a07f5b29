"""JSON tables: data by place, tools bound to places, instances, and a search that never shows what is not there."""

from commonplace.tables.jobs import work
from commonplace.tables.tables import Tables

__all__ = ["Tables", "work"]
