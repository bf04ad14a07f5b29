"""The sources that a package is read from. Each is a `Tree`: it has the names of files, their stats and their bytes."""
