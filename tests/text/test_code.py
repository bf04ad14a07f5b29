"""Source files: 1. definitions are found with their scores, names, decorators and comments; 2. passages end between
them and know where they stand; 3. a syntax error, an unknown language or no parser means lines; 4. passages quote;
5. definitions are the contents of code.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.chunk import ChunkRules, chunk
from commonplace.text.code import LANGUAGES, can_parse, code_blocks
from commonplace.text.outline import contents, outline
from commonplace.text.text_lines import split_lines

SOURCES = {
    "python": '"""Doc."""\nimport os\n\nfrom x import y\n\n# about A\n@dec\nclass A(Base):\n    # about f\n'
    "    @staticmethod\n    def f(self):\n        import json\n        return 1\n\n"
    "x = 1  # a remark\ndef h(): pass\ntype T = int\n",
    "typescript": 'import a from "a";\nimport {b} from "b";\n\n/** Doc */\n@Component({})\nexport class A {\n'
    "  /** m */\n  m(): void {}\n}\nexport interface I { x: number }\nexport type T = string;\nenum E { A }\n// fn\n"
    "export const f = (x: number) => { return x; };\nexport default function g() {}\n",
    "tsx": "export function C() { return <div/>; }\n",
    "javascript": 'import a from "a";\nclass A { m() {} }\nconst f = () => 1;\nfunction g() {}\n',
    "go": 'package main\n\nimport (\n  "fmt"\n)\n\n// S is.\ntype S struct { a int }\ntype I interface { M() }\n'
    "type N int\n// M does.\nfunc (s *S) M() {}\nfunc main() {}\n",
    "rust": "use a::b;\nuse c::d;\n/// Doc\n#[derive(Debug)]\npub struct S { a: i32 }\npub trait T { fn x(&self); }\n"
    "impl T for S { fn x(&self) {} }\nenum E { A }\ntype N = i32;\nfn main() {}\n",
    "java": "package a;\nimport b.C;\nimport b.D;\n/** Doc */\n@Anno\npublic class A {\n  /** m */\n  @Override\n"
    "  public void m() {}\n  enum E { X }\n}\ninterface I {}\n",
    "c": '#include <a.h>\n#include "b.h"\n/* s */\nstruct S { int a; };\ntypedef struct { int b; } T;\ntypedef int N;\n'
    "enum E { A };\n// f\nstatic int *f(int x) { return 0; }\nint g(void);\n",
}
EXPECTED = {
    "python": [(2, 60, ""), (6, 100, "A"), (9, 90, "f"), (16, 90, "h"), (17, 80, "T")],
    "typescript": [
        (1, 60, ""), (4, 100, "A"), (7, 90, "m"), (10, 100, "I"), (11, 80, "T"), (12, 80, "E"), (13, 90, "f"),
        (15, 90, "g"),
    ],
    "tsx": [(1, 90, "C")],
    "javascript": [(1, 60, ""), (2, 100, "A"), (3, 90, "f"), (4, 90, "g")],
    "go": [(3, 60, ""), (7, 100, "S"), (9, 100, "I"), (10, 80, "N"), (11, 90, "M"), (13, 90, "main")],
    "rust": [
        (1, 60, ""), (3, 100, "S"), (6, 100, "T"), (7, 100, "S"), (8, 80, "E"), (9, 80, "N"), (10, 90, "main"),
    ],
    "java": [(2, 60, ""), (4, 100, "A"), (7, 90, "m"), (10, 80, "E"), (12, 100, "I")],
    "c": [(1, 60, ""), (3, 100, "S"), (5, 100, "T"), (6, 80, "N"), (7, 80, "E"), (8, 90, "f")],
}  # fmt: skip


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_definitions_are_found_with_what_leads_up_to_them(language: str) -> None:
    assert can_parse(language)
    found: dict[int, tuple[int, int, str]] = {}
    for block in code_blocks(SOURCES[language], language):
        if block.kind in ("definition", "import"):  # the outermost of those that begin on a line
            found.setdefault(block.line, (block.line + 1, block.level, block.source))
    assert list(found.values()) == EXPECTED[language]


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
def test_a_constant_is_no_function_unless_its_value_is_one(language: str) -> None:
    body = (
        "const pot = 1;\nconst { lid, spout } = options;\nlet cup = pour(pot);\nconst brew = () => pot;\n"
        "const steep = function () { const minutes = 3; return minutes; };\n"
    )
    assert [one.title for one in contents(body, language)] == ["brew", "steep"]


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
def test_functions_that_are_assigned_are_called_by_their_own_name_or_the_one_they_get(language: str) -> None:
    body = (
        "module.exports = function brew() {};\n// hot\nexports.pour = function () {};\nexports.cup = () => 1;\n"
        "Pot.prototype.fill = function () {};\nexports.size = 3;\n"
        "module.exports = {\n  steep() {},\n  // on top\n  lid: function () {},\n  sip: () => 1,\n  size: 3,\n};\n"
        "serve({ done: () => 1 });\n"
    )
    found = [(one.title, one.line) for one in contents(body, language)]
    assert found == [("brew", 1), ("pour", 2), ("cup", 4), ("fill", 5), ("steep", 8), ("lid", 9), ("sip", 11)]


def test_types_that_are_declared_together_are_entries_of_their_own() -> None:
    body = (
        "package tea\n\n// All of it.\ntype (\n\t// Pot pours.\n\tPot struct {\n\t\tlid int\n\t}\n\n"
        "\tCup interface{ Sip() }\n\tSize int\n\tSame = int\n)\n\n// Tray holds.\ntype Tray struct{}\n"
    )
    found = [(one.title, one.line, one.line_end, one.level) for one in contents(body, "go")]
    assert found == [
        ("Pot", 5, 8, 1),
        ("Cup", 10, 10, 1),
        ("Size", 11, 11, 1),
        ("Same", 12, 12, 1),
        ("Tray", 15, 16, 1),
    ]


def test_a_pointer_to_a_function_is_called_by_its_name() -> None:
    body = "typedef int (*pour_t)(int);\nint (*choose(int a))(int) { return 0; }\ntypedef void (lid_t)(void);\n"
    assert [one.title for one in contents(body, "c")] == ["pour_t", "choose", "lid_t"]


def test_the_contents_of_code_are_its_definitions() -> None:
    body = SOURCES["python"]
    found = contents(body, "python")
    assert [(one.level, one.line, one.line_end, " › ".join(one.path)) for one in found] == [
        (1, 6, 13, "A"), (2, 9, 13, "A › f"), (1, 16, 16, "h"), (1, 17, 17, "T"),
    ]  # fmt: skip
    assert body[found[0].char_start : found[0].own_char_end] == "# about A\n@dec\nclass A(Base):\n"
    assert body[found[1].char_start : found[1].char_end].startswith("    # about f\n    @staticmethod\n    def f(")
    assert outline(body, "python") == [], "nothing of it is stored"
    assert contents("def broken(:\n", "python") == contents("", "python") == []


def test_passages_end_between_definitions_and_know_where_they_stand() -> None:
    methods = "".join(
        f"    @property\n    def part_{n}(self):\n        # reason {n}\n" + f"        value = {n}\n" * 12 + "\n"
        for n in range(12)
    )
    body = f"import os\n\n\nclass Whole:\n{methods}\nprint(Whole)\n"
    spans = chunk(body, "python", ChunkRules(target=200, overlap=20, window=80))
    assert len(spans) > 3
    for span in spans[1:]:
        assert span.text.lstrip().startswith("@property")
    assert spans[0].headings == ()
    assert spans[2].headings[0] == "Whole"
    assert spans[2].headings[1].startswith("part_")
    for one, other in pairwise(spans):
        assert one.char_end == other.char_start  # a definition begins clean


def test_code_after_a_definition_is_not_said_to_be_inside_it() -> None:
    body = "def one():\n" + "    pass\n" * 40 + "\nx = 1\n" * 200
    spans = chunk(body, "python", ChunkRules(target=60, overlap=0, window=30))
    assert spans[1].headings == ("one",)
    assert spans[-1].headings == ()


@pytest.mark.parametrize(
    ("language", "body"), [("python", "def f(:\n"), ("go", "func {{{\n"), ("cobol", "MOVE A TO B\n")]
)
def test_a_syntax_error_or_an_unknown_language_falls_back_to_lines(language: str, body: str) -> None:
    assert code_blocks(body, language) == []
    long = body + "x = 1\n\n" * 2000
    assert "".join(span.text for span in chunk(long, language, ChunkRules(overlap=0))) == long


def test_without_the_parsers_code_is_cut_at_lines() -> None:
    script = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('tree_sitter'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name.startswith('tree_sitter') else real(name, *rest)\n"
        "from commonplace.text.chunk import chunk\n"
        "from commonplace.text.code import can_parse\n"
        "body = 'def f():\\n    return 1\\n\\n' * 1000\n"
        "spans = chunk(body, 'python')\n"
        "print(can_parse('python'), len(spans) > 1, all(body[s.char_start:s.char_end] == s.text for s in spans))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


@given(
    st.sampled_from(sorted(LANGUAGES)),
    st.lists(st.sampled_from(sorted(SOURCES.values())), max_size=4),
    st.text(max_size=40),
)
def test_passages_of_any_source_quote_and_cover_it(language: str, parts: list[str], more: str) -> None:
    body = "".join(parts) + more
    spans = chunk(body, language, ChunkRules(target=30, overlap=5, window=15))
    if not body.strip():
        assert spans == []
        return
    assert (spans[0].char_start, spans[-1].char_end) == (0, len(body))
    assert all(body[span.char_start : span.char_end] == span.text for span in spans)
    for one, other in pairwise(spans):
        assert one.char_start < other.char_start <= one.char_end


@given(st.sampled_from(sorted(LANGUAGES)), st.integers(1, 3), st.sampled_from(["", "\r", "\f"]), st.booleans())
def test_contents_of_any_source_lie_inside_each_other(language: str, times: int, sign: str, ends: bool) -> None:
    body = (SOURCES[language] * times).replace("\n", f"{sign}\n")
    body = body if ends else body.rstrip()
    lines = split_lines(body)
    around: list[Any] = []
    for one in contents(body, language):
        around = [*around[: one.level - 1], one]
        assert one.path == tuple(outer.title for outer in around)
        assert all(outer.line <= one.line <= one.line_end <= outer.line_end for outer in around)
        assert 1 <= one.line <= one.own_line_end <= one.line_end <= len(lines)
        quoted = body[one.char_start : one.char_end]
        assert split_lines(quoted) == lines[one.line - 1 : one.line_end]
        assert one.title in quoted


def test_long_files_are_parsed_without_ending_the_process() -> None:
    script = (
        "from commonplace.text.code import code_blocks\n"
        "for language, line in (('python', 'def f(): pass\\n'), ('c', 'int f(void) { return 0; }\\n')):\n"
        "    assert len(code_blocks(line * 20000, language)) == 40000\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("language", "opens"), [("rust", "fn f(){"), ("javascript", "function f(){"), ("java", "class A{")]
)
def test_definitions_nested_without_end_take_no_longer_than_others(language: str, opens: str) -> None:
    begun = time.process_time()
    blocks = code_blocks(opens * 10_000 + "}" * 10_000, language)
    assert time.process_time() - begun < 5
    assert blocks


@pytest.mark.parametrize(("language", "remark"), [("go", "// tea\n"), ("python", "# tea\n")])
def test_comments_without_end_above_a_definition_take_no_longer_than_others(language: str, remark: str) -> None:
    begins, ends = ("package tea\n", "func brew() {}\n") if language == "go" else ("", "def brew(): pass\n")
    begun = time.process_time()
    blocks = code_blocks(begins + remark * 40_000 + ends, language)
    assert time.process_time() - begun < 5
    assert [(block.kind, block.source) for block in blocks] == [("definition", "brew"), ("lead", "")]
