"""The index of vectors: flat codes that are scanned, and floats that the best are scored by."""
