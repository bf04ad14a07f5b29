"""Collections of documents: which are visible, and how documents are outlined, read in sections and searched."""
