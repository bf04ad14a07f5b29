"""What other programs wrote, as interchange records: one reader per format, each knowing nothing of the store."""
