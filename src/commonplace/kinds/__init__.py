"""What a library keeps: a room for each kind of thing, and none knows another."""
