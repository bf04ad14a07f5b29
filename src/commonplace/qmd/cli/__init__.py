"""The `qmd` command line: folders of files, found and read as users of qmd are used to."""
