"""A line of a passage is under the last heading or definition that is open there."""

from __future__ import annotations

import pytest

from commonplace.text.code import LANGUAGES
from commonplace.text.quote import CODE, headings_over

NOTE = "# Tea\n\nIntro.\n\n## Oolong ##\n\nWater.\n\n```sh\n# no heading\n```\n\n### Cups\n\nTwo.\n\n## Green\n\nCool."
PYTHON = '''class Kettle:
    """Boils."""

    def fill(self):
        pass

    async def boil(self):
        def inner():
            return 100
        return inner()


def pour():
    return 1
'''
JAVA = """public class Pot<T> extends Vessel {
    private static final int SIZE = 3;

    public List<String> pour(int cups) throws Empty {
        if (cups > 2) {
            return none();
        }
    }

    Pot() {
        fill(2);
    }
}
"""
GO = "type Cup struct {\n\tsize int\n}\n\nfunc (c *Cup) Fill(n int) error {\n\treturn nil\n}\n"
C = "static int\nhandle(int n)\n{\n}\n\nint *pour(struct cup *c) {\n\twhile (n) {\n\t\tn--;\n"
RUST = "impl<T> Pot<T> {\n    pub(crate) fn pour(&self) -> u8 {\n        1\n"
SCRIPT = "export default class Pot {\n  async pour(cups) {\n    for (const cup of cups) {\n      cup.fill()\n"


@pytest.mark.parametrize(
    ("text", "format", "line", "headings"),
    [
        (NOTE, "markdown", 2, ("Tea",)),
        (NOTE, "markdown", 4, ("Tea", "Oolong")),
        (NOTE, "markdown", 9, ("Tea", "Oolong")),
        (NOTE, "text", 9, ("Tea",)),
        (NOTE, "markdown", 14, ("Tea", "Oolong", "Cups")),
        (NOTE, "markdown", 18, ("Tea", "Green")),
        (PYTHON, "python", 1, ("Kettle",)),
        (PYTHON, "python", 4, ("Kettle", "fill")),
        (PYTHON, "python", 8, ("Kettle", "boil", "inner")),
        (PYTHON, "python", 9, ("Kettle", "boil")),
        (PYTHON, "python", 13, ("pour",)),
        (f"{PYTHON}\n\nCUPS = 2\n", "python", 16, ()),
        (f"{PYTHON}    class of their own\n", "python", 14, ("pour",)),
        (JAVA, "java", 1, ("Pot",)),
        (JAVA, "java", 5, ("Pot", "pour")),
        (JAVA, "java", 10, ("Pot", "Pot")),
        (GO, "go", 1, ("Cup",)),
        (GO, "go", 5, ("Fill",)),
        (GO, "go", 6, ("Fill",)),
        (f"// Says\n// how.\n{GO}", "go", 0, ("Cup",)),
        (f"{PYTHON}\n\n# Aside.\n\n@cache\ndef rinse():\n", "python", 18, ("rinse",)),
        (f"{PYTHON}\n\n# Aside.\n\n@cache\ndef rinse():\n", "python", 16, ()),
        (C, "c", 7, ("pour",)),
        (RUST, "rust", 2, ("Pot", "pour")),
        (SCRIPT, "javascript", 3, ("Pot", "pour")),
    ],
)
def test_a_line_is_under_what_is_open_there(text: str, format: str, line: int, headings: tuple[str, ...]) -> None:
    assert headings_over(text, line, format, headings[:1]) == headings


def test_definitions_are_read_in_every_language_of_which_files_are_cut_at_them() -> None:
    assert CODE == LANGUAGES


def test_what_stands_before_the_passage_stays_open() -> None:
    assert headings_over("Water.\n", 0, "markdown", ("Tea", "Oolong")) == ("Tea", "Oolong")
    assert headings_over("Water.\n## Green\n", 1, "markdown", ("Tea", "Oolong")) == ("Tea", "Green")
    body = "        return 1\n\n    def pour(self):\n        return 2\n"
    assert headings_over(body, 0, "python", ("Kettle", "boil")) == ("Kettle", "boil")
    assert headings_over(body, 3, "python", ("Kettle", "boil")) == ("Kettle", "pour")
