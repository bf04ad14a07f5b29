"""The qmd surface: folders of files, searched and read with six tools, a resource and a prompt.

`profile.py` puts them together, apart from the rest: the command line finds and reads the same way, and loads no tools.
"""
