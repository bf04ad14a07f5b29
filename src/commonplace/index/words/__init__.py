"""The index of words, on tantivy."""
