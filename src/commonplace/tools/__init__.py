"""Tools, declared once: a name, a description, schemas and a handler of a few lines over the Library."""
