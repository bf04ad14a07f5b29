"""The places of the definitions of a source file, so that it is cut between them. Uses tree-sitter if installed.

A definition begins with the comments and decorators right above it. Without the `code` extra, and for a file with a
syntax error, there are no definitions and the file is cut at its blank lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from commonplace.text.structure import Block

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

TYPES, FUNCTIONS, NAMES, IMPORTS = 100, 90, 80, 60
"""Scores of a cut: before a class, struct, interface or trait; a function or method; a type or enum; the imports."""


class _Grammar(NamedTuple):
    """A language's package, the function in it that gives the grammar, and the patterns of what counts as what.

    A pattern stands for its outermost node, unless it names another.
    """

    package: str
    function: str
    types: tuple[str, ...]
    functions: tuple[str, ...]
    names: tuple[str, ...]
    imports: tuple[str, ...]
    leads: tuple[str, ...]
    """Node types that belong to a definition when they stand right above it."""


_SCRIPT_FUNCTIONS = (
    "(function_declaration)", "(generator_function_declaration)", "(method_definition)",
    "(lexical_declaration (variable_declarator value: (arrow_function)))",
    "(lexical_declaration (variable_declarator value: (function_expression)))",  # [a b] after a field matches anything
    "(expression_statement (assignment_expression right: (arrow_function)))",
    "(expression_statement (assignment_expression right: (function_expression)))",
    "(expression_statement (assignment_expression right: (object (pair value: (arrow_function)) @functions)))",
    "(expression_statement (assignment_expression right: (object (pair value: (function_expression)) @functions)))",
    "(field_definition value: (arrow_function))",
)  # fmt: skip
_TYPED_FUNCTIONS = (
    *_SCRIPT_FUNCTIONS[:-1],
    "(public_field_definition value: (arrow_function))",
    "(function_signature)",
    "(abstract_method_signature)",
)
_SCRIPT_LEADS = ("comment", "decorator")
_TYPESCRIPT = (
    ("(class_declaration)", "(abstract_class_declaration)", "(interface_declaration)", "(internal_module)"),
    _TYPED_FUNCTIONS,
    ("(type_alias_declaration)", "(enum_declaration)"),
    ("(import_statement)",),
    _SCRIPT_LEADS,
)
_GRAMMARS = {
    "python": _Grammar(
        "tree_sitter_python", "language",
        ("(class_definition)",), ("(function_definition)",), ("(type_alias_statement)",),
        ("(import_statement)", "(import_from_statement)", "(future_import_statement)"), ("comment",),
    ),
    "typescript": _Grammar("tree_sitter_typescript", "language_typescript", *_TYPESCRIPT),
    "tsx": _Grammar("tree_sitter_typescript", "language_tsx", *_TYPESCRIPT),
    "javascript": _Grammar(
        "tree_sitter_javascript", "language",
        ("(class_declaration)",), _SCRIPT_FUNCTIONS, (), ("(import_statement)",), _SCRIPT_LEADS,
    ),
    "go": _Grammar(
        "tree_sitter_go", "language",
        ("(type_spec type: [(struct_type) (interface_type)])",),
        ("(function_declaration)", "(method_declaration)"), ("(type_spec)", "(type_alias)"), ("(import_declaration)",),
        ("comment",),
    ),
    "rust": _Grammar(
        "tree_sitter_rust", "language",
        ("(struct_item)", "(union_item)", "(trait_item)", "(impl_item)", "(mod_item body: (_))"),
        ("(function_item)", "(function_signature_item)", "(macro_definition)"), ("(enum_item)", "(type_item)"),
        ("(use_declaration)",), ("line_comment", "block_comment", "attribute_item"),
    ),
    "java": _Grammar(
        "tree_sitter_java", "language",
        ("(class_declaration)", "(interface_declaration)", "(record_declaration)", "(annotation_type_declaration)"),
        ("(method_declaration)", "(constructor_declaration)"), ("(enum_declaration)",), ("(import_declaration)",),
        ("line_comment", "block_comment"),
    ),
    "c": _Grammar(
        "tree_sitter_c", "language",
        ("(struct_specifier body: (_))", "(union_specifier body: (_))"), ("(function_definition)",),
        ("(enum_specifier body: (_))", "(type_definition)"), ("(preproc_include)",), ("comment",),
    ),
}  # fmt: skip
LANGUAGES = frozenset(_GRAMMARS)
_CRASHES = "0.26.0"  # reads freed memory in long files (py-tree-sitter issue 472), which would end our process
_DEEPEST = 200
"""Deeper definitions start no block. A node finds its parent from the root down, so depth costs its square."""
_MOST_LEADS = 200
"""Comments looked at above a definition, more than a passage holds: each finds the one before it from the first on."""

_WRAPPERS = frozenset(
    {
        "decorated_definition", "export_statement", "ambient_declaration", "type_definition", "declaration",
        "type_declaration",
    }
)  # fmt: skip
_SCORES = {"types": TYPES, "functions": FUNCTIONS, "names": NAMES, "imports": IMPORTS}


@cache
def can_parse(language: str) -> bool:
    """Return whether the parser of a language is installed, in a version that can be trusted."""
    grammar = _GRAMMARS.get(language)
    if grammar is None or find_spec("tree_sitter") is None or find_spec(grammar.package) is None:
        return False
    from importlib.metadata import version  # reads mail headers, which takes a while to load

    return version("tree-sitter") != _CRASHES


def code_blocks(body: str, language: str) -> list[Block]:
    """Return the definitions, the blocks of imports, and the lines that lead up to each definition.

    The `level` of a definition is the score of a cut before it.
    """
    if not can_parse(language):
        return []
    from tree_sitter import Parser, QueryCursor

    try:
        grammar, query = _grammar(language)
    except (ImportError, AttributeError, TypeError, ValueError):
        return []  # a parser and a grammar of other times, which do not fit
    root = Parser(grammar).parse(body.encode("utf-8")).root_node
    if root.has_error:
        return []
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(_DEEPEST)
    captures = cursor.captures(root)
    definitions: dict[tuple[int, int], Block] = {}
    leads: list[Block] = []
    for kind in ("types", "functions", "names"):  # a Go struct is a type_spec too: the better score stays
        for node in captures.get(kind, ()):
            outer = _wrapped(node)
            line = _first_line(outer, _GRAMMARS[language].leads)
            end = outer.end_point.row + 1
            if (line, end) not in definitions:
                name, row = _name_of(node) or _name_of(outer) or ("", node.start_point.row)
                definitions[line, end] = Block("definition", line, end, _SCORES[kind], name)
                leads.append(Block("lead", line, row + 1))
    imports = _import_blocks(captures.get("imports", ()))
    return sorted([*definitions.values(), *leads, *imports], key=lambda block: (block.line, -block.end))


@cache
def _grammar(language: str) -> tuple[Language, Query]:
    from tree_sitter import Language, Query

    grammar = _GRAMMARS[language]
    language_grammar = Language(getattr(import_module(grammar.package), grammar.function)())
    patterns = [(kind, pattern) for kind in _SCORES for pattern in getattr(grammar, kind)]
    parts = [pattern if "@" in pattern else f"{pattern} @{kind}" for kind, pattern in patterns]
    return language_grammar, Query(language_grammar, "\n".join(parts))


def _wrapped(node: Node) -> Node:
    """Return the definition with what is around it: an export, its decorators, the typedef it is in."""
    while node.parent is not None and node.parent.type in _WRAPPERS and not _is_group(node.parent):
        node = node.parent
    return node


def _is_group(node: Node) -> bool:
    """Return whether a node is Go's `type ( … )`, in which each type is a definition of its own."""
    return node.type == "type_declaration" and any(child.type == "(" for child in node.children[:3])


def _first_line(node: Node, leads: Sequence[str]) -> int:
    line = node.start_point.row
    before = node.prev_sibling
    if before is None and node.parent is not None and node.parent.type == "block":
        before = node.parent.prev_sibling  # Python's first definition in a class: its comments stand before the block
    for _ in range(_MOST_LEADS):
        if before is None or before.type not in leads or _last_row(before) + 1 < line:
            break
        if before.prev_sibling is not None and _last_row(before.prev_sibling) == before.start_point.row:
            break  # a remark at the end of a line of code
        line = before.start_point.row
        before = before.prev_sibling
    return line


def _last_row(node: Node) -> int:
    """Return the last line of a node. Some nodes own the end of their line."""
    return node.end_point.row - (node.end_point.column == 0 and node.end_point.row > node.start_point.row)


def _name_of(node: Node) -> tuple[str, int] | None:
    """Return the name of what a node defines, and the line that has it."""
    for part in (node, *_inside(node)):
        for field in ("name", "declarator", "left", "type", "key"):
            named = part.child_by_field_name(field)
            while named is not None and (deeper := _declared_by(named)) is not None:
                named = deeper
            if named is not None and named.text and named.text.count(b"\n") == 0:
                return " ".join(named.text.decode("utf-8", "replace").split()), named.start_point.row
    return None


def _declared_by(node: Node) -> Node | None:
    """Return the node that a declarator is around, or None.

    That is `f` in C's `*f`, `f(int)` and `(*f)`; of JavaScript's `exports.f` it is the last part.
    """
    if node.type == "parenthesized_declarator":
        return next((child for child in reversed(node.named_children) if child.type != "comment"), None)
    return node.child_by_field_name("property" if node.type == "member_expression" else "declarator")


def _inside(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == "assignment_expression" and (right := child.child_by_field_name("right")) is not None:
            yield right  # a function may have a name of its own
        if child.type in ("variable_declarator", "type_spec", "assignment_expression"):
            yield child


def _is_at_the_root(node: Node) -> bool:
    """Return whether nothing is around a node but the conditions of C's preprocessor."""
    around = node.parent
    while around is not None and around.type.startswith("preproc"):
        around = around.parent
    return around is None or around.parent is None


def _import_blocks(nodes: Sequence[Node]) -> list[Block]:
    """Return imports as blocks. Those with no more than a blank line between them are one."""
    blocks: list[Block] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        if not _is_at_the_root(node):
            continue  # inside a function it is a line like any other
        row, end = node.start_point.row, _last_row(node) + 1
        if blocks and row <= blocks[-1].end + 1:
            blocks[-1] = blocks[-1]._replace(end=max(end, blocks[-1].end))
        else:
            blocks.append(Block("import", row, end, IMPORTS))
    return blocks
