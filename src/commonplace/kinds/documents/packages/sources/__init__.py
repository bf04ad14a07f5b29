"""The kinds of places a package is read from. Each gives the same: names, what is known of a file, its bytes."""
