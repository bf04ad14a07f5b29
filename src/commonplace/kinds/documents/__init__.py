"""Collections of documents: what may be seen of them, how they are outlined, read in sections and searched."""
