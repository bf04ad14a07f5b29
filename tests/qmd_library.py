"""A library of some hundred small files in several languages and scripts, in folders as people keep them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from commonplace.errors import CommonplaceError
from commonplace.kinds.documents.folders.folder_collections import set_context
from commonplace.library import Library
from commonplace.profiles.registry import profile
from commonplace.tools.tool import Call, Reply

TOPICS = (
    ("tea", "Oolong wants water just off the boil. Steep the leaves for three minutes."),
    ("bread", "Knead the dough, let it rise overnight, bake it in a hot oven."),
    ("garden", "Tomatoes need sun and a stake. Water them in the morning."),
    ("bicycle", "Oil the chain every month and check the brakes before a tour."),
    ("backup", "Copy the database every night and restore it once a month to be sure."),
    ("network", "The router forgets its lease after a power cut. Restart the modem first."),
    ("budget", "Rent, food and insurance take most of it; the rest is saved."),
    ("travel", "The night train to Vienna leaves at nine. Book a couchette early."),
)

SPECIAL = {
    "notes/2025/plan.md": "# Planning\n\nThe quarterly plan for the tea house.\nBudget and staff are in it.\n",
    "notes/2025/old plan.md": "# Old plan\n\nLast year's plan, kept for reference.\n",
    "notes/a/c.md": "# First c\n\nThe same name lives in two folders.\n",
    "notes/b/c.md": "# Second c\n\nThe other one of the same name.\n",
    "notes/abc.md": "# Abc\n\nNot to be found as c.md.\n",
    "notes/x/a/b/deep.md": "# Deep\n\nFar down in the tree.\n",
    "notes/crlf.md": "# Windows\r\n\r\nfirst line\r\nsecond line\r\n",
    "notes/numbers.md": "".join(f"line {number}\n" for number in range(1, 201)),
    "notes/lines:12.md": "# A colon\n\nThe name has a colon and digits in it.\n",
    "notes/odd:12": "not taken: it is no Markdown\n",
    "notes/odd:12.md": "# Odd\n\nA name with a colon.\n",
    "notes/100% sure.md": "# Percent\n\nA percent sign in a name.\n",
    "notes/a%20b.md": "# Percent twenty\n\nA name that looks encoded.\n",
    "notes/a b.md": "# A blank\n\nA name with a blank.\n",
    "notes/under_score.md": "# Underscore\n\nSnakes.\n",
    "notes/underXscore.md": "# Underscore no\n\nNo snakes.\n",
    "notes/comma, and more.md": "# Comma\n\nA name with a comma.\n",
    "notes/[draft] letter.md": "# Draft\n\nA name with brackets.\n",
    "notes/big.md": "# Big\n\n" + "This file is larger than ten kilobytes. " * 400,
    "notes/abcdef.md": "# Hexadecimal\n\nA name of six hexadecimal digits.\n",
    "notes/code.md": "# Code\n\nCall `getUserName()` over HTTP/2 in C++, see DEC-0054 of 2026.4.10.\n",
    "notes/twin-1.md": "# Twin\n\nExactly the same words in two files.\n",
    "notes/twin-2.md": "# Twin\n\nExactly the same words in two files.\n",
    "notes/coverage-all.md": "# Everything\n\nA zeppelin, a quokka and a marmalade jar.\n",
    "notes/coverage-some.md": "# Some\n\nzeppelin zeppelin zeppelin zeppelin quokka quokka quokka quokka\n",
    "notes/coverage-far.md": "# Far\n\nA zeppelin at the top.\n\n"
    + "Filler about nothing. " * 400
    + "\n\n## End\n\nA quokka.\n",
    "notes/phrase.md": "# Phrase\n\nThe blue lantern hangs by the door.\n",
    "notes/no-phrase.md": "# No phrase\n\nA lantern that is blue, and a blue door.\n",
    "docs/日本/東京.md": "# 東京\n\n東京都庁は新宿にあります。展望台からの眺めがよい。\n",
    "docs/中文/茶.md": "# 茶\n\n乌龙茶要用刚烧开的水冲泡三分钟。\n",
    "docs/한국/차.md": "# 차\n\n우롱차는 뜨거운 물에 삼 분 동안 우려냅니다.\n",
    "docs/deutsch/Straße.md": "# Straße\n\nDie Straße ist wegen Bauarbeiten gesperrt.\n",
    "docs/français/résumé.md": "# Résumé\n\nUn résumé de la réunion du café.\n",
    "docs/русский/чай.md": "# Чай\n\nЧай заваривают горячей водой три минуты.\n",
    "docs/عربي/شاي.md": "# شاي\n\nيحضر الشاي بالماء الساخن.\n",
    "docs/ไทย/ชา.md": "# ชา\n\nชงชาด้วยน้ำร้อนสามนาที\n",
    "docs/emoji 🍵.md": "# Cup 🍵\n\nA cup of tea with a face.\n",
    "private/diary.md": "# Diary\n\nA xylophone nobody else should hear.\n",
    "private/tea.md": "# Tea diary\n\nOolong again.\n",
}


def write(root: Path) -> None:
    for name, text in SPECIAL.items():
        _write(root / name, text)
    for number in range(64):
        topic, text = TOPICS[number % len(TOPICS)]
        body = (
            f"# {topic.title()} {number}\n\n## About {topic}\n\n{text}\n\nEntry number {number} of the {topic} log.\n"
        )
        _write(root / f"notes/journal/2025-{number % 12 + 1:02}/{topic}-{number}.md", body)
    _write(root / "notes/drafts/hidden.md", "# Hidden\n\nLeft out by a rule.\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))


def fill(library: Library, root: Path) -> None:
    library.add_folder(root / "notes", "notes", "**/*.md", ignore=["drafts/**"])
    library.add_folder(root / "docs", "docs", "**/*.md")
    library.add_folder(root / "private", "private", "**/*.md")
    library.folders.change("private", included=False)
    set_context(library.store, None, "", "Everything about the house.")
    set_context(library.store, "notes", "2025", "Plans of the year --> and more.")
    set_context(library.store, "notes", "a", "Only folder a.")


Tools = Callable[..., Reply]


def tools_over(library: Library) -> Tools:
    """Calls by name, as a door makes them; what is answered must be what the tool's schema promises."""
    by_name = {tool.name: tool for tool in profile("qmd").tools}

    def call(name: str, /, **arguments: Any) -> Reply:
        tool = by_name[name]
        reply = tool.call(Call(library), arguments)
        assert isinstance(reply, Reply)
        json.dumps([reply.content, reply.structured])
        if tool.output is not None:
            Draft202012Validator(tool.output).validate(reply.structured)
        else:
            assert reply.structured is None
        return reply

    return call


def results(reply: Reply) -> list[dict[str, Any]]:
    assert reply.structured is not None
    found: list[dict[str, Any]] = reply.structured["results"]
    return found


def found(reply: Reply) -> list[str]:
    return [result["file"] for result in results(reply)]


def text_of(reply: Reply) -> str:
    assert reply.content[0]["type"] == "text"
    return str(reply.content[0]["text"])


def failure(run: Callable[[], object]) -> tuple[str, str]:
    """The code and the sentence of what goes wrong."""
    with pytest.raises(CommonplaceError) as caught:
        run()
    return caught.value.code, str(caught.value)
