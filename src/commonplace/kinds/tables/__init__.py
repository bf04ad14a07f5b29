"""JSON tables: data by place, tools bound to places, instances, and a search that shows only what is in the data."""

from commonplace.kinds.tables.tables import Tables

__all__ = ["Tables"]
