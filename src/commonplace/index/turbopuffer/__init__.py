"""Both indexes with the turbopuffer service."""
