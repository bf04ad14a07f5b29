"""The page in a browser.

1. Nobody is left out: axe finds nothing on any screen, and nothing is wider than the window, down to 320 pixels.
2. What the script adds: hits as one types, keys, copying. Without it every screen does what it says.
3. The browser has nothing to complain about: no policy is broken, and nothing is asked of another server.

The suite looks with axe at each screen in one of two variants; `make browser-all` sets BROWSER_ALL and looks at every
screen in all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from browsing import axe, chromium, tab, violations

from commonplace.kinds.memories.entry import New, Revision
from commonplace.library import Library
from commonplace.model import Draft, uri_of
from commonplace.settings import Settings
from commonplace.web.paths import item_path
from serving import environment_of, process

FULL = [*product(("light", "dark"), (390, 1280), (True, False))]
VARIANTS = FULL if os.environ.get("BROWSER_ALL") else [("light", 1280, True), ("dark", 390, False)]
SCREENS = {
    "home": "/",
    "results": "/?q=kettle",
    "narrowed": "/?q=kettle&tag=copper",
    "nothing": "/?q=kettle&tag=unheard",
    "list": "/?tag=copper",
    "item": "/i/notes/kettle-1?q=kettle&line=3",
    "long": item_path(uri_of("document", "docs", "long.md")),
    "code": item_path(uri_of("document", "docs", "code.py"), line=2),
    "gone": "/i/notes/kettle-99",
    "missing": "/nothing",
    "wrong": "/?q=x&kind=nonsense",
    "connect": "/connect",
    "memories": "/memories",
    "few memories": "/memories?tag=staging&state=all",
    "no memories": "/memories?thread=unheard",
    "memory": "/memories/2",
    "deleted": "/memories?done=deleted&n=3&undo=x",
    "sources": "/sources",
    "source": "/sources/one?name=vault",
    "health": "/health",
}
LONG = "# Long\n\nA table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" + "".join(
    f"## Part {number}\n\n- one\n- two\n\n> said\n\n```python\n{'y' * 150} = {number}\n```\n\n{'word ' * 1000}\n\n"
    for number in range(8)
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    with Library.open(home, settings=Settings(home=home, models=home / "models", model="static")) as library:
        for number in range(30):
            body = f"A kettle of copper.\n\nIt boils {number} liters.\n\nThe kettle sings."
            tags = ("copper",) if number % 2 else ("steel", "kitchen")
            library.put(
                Draft("note", f"kettle-{number}", title=f"Kettle {number}", body=body, format="markdown", tags=tags)
            )
        library.put(Draft("document", "long.md", parent="docs", title="Long", body=LONG, format="markdown"))
        code = "def kettle():\n    return 'a kettle'\n"
        library.put(Draft("document", "code.py", parent="docs", title="code.py", body=code, format="python"))
        vault = tmp_path_factory.mktemp("files") / "vault"
        vault.mkdir()
        for name, text in (("tea.md", "# Tea"), ("empty.md", "")):
            (vault / name).write_text(text)
        library.add_folder(vault, "vault")
        library.folders.set_context("vault", "", "Notes on tea.")
        facts = [New("orders", "agent", f"Fact {number} of the orders.", tags=("staging",)) for number in range(60)]
        library.memories.store(facts)
        library.memories.revise([Revision(2, text="Fact 2 of the orders, corrected.", tags=("staging", "db"))])
        library.memories.store([New("orders", "user", "It was replaced.", supersedes=(1,))])
        library.embed()
    with process(environment_of(home)) as server:
        yield server.address.removesuffix("/mcp")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


# 1. Nobody is left out


@pytest.mark.parametrize(("scheme", "width", "script"), VARIANTS)
def test_axe_finds_nothing_on_any_screen(scheme: str, width: int, script: bool, browser: Any, base: str) -> None:
    checker, flaws = axe(), []
    viewport = {"width": width, "height": 800}
    context = browser.new_context(base_url=base, color_scheme=scheme, viewport=viewport, bypass_csp=True)
    page = context.new_page()
    if not script:
        page.route("**/*.js", lambda route: route.abort())
    short = not os.environ.get("BROWSER_ALL")
    for number, (name, path) in enumerate(SCREENS.items()):
        if short and number % len(VARIANTS) != VARIANTS.index((scheme, width, script)):
            continue
        page.goto(path)
        flaws += [f"{name}: {flaw}" for flaw in violations(page, checker)]
    context.close()
    assert not flaws, "\n".join(flaws)


@pytest.mark.parametrize("width", [320, 1280])
def test_no_screen_is_wider_than_the_window(width: int, browser: Any, base: str) -> None:
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 800})
    page = context.new_page()
    for name, path in SCREENS.items():
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        small = page.evaluate(
            "[...document.querySelectorAll('button, nav a, .side a, .chip, .tag')].filter(e => e.offsetParent)"
            ".filter(e => e.getBoundingClientRect().height < 23.5).map(e => e.outerHTML)"
        )
        assert small == [], name
    context.close()


# 2. What the script adds


def test_hits_come_as_one_types_and_are_chosen_by_keys(browser: Any, base: str) -> None:
    with tab(browser, base) as page:
        page.goto("/connect")
        page.keyboard.press("/")
        page.keyboard.type("kettl", delay=20)
        page.wait_for_selector("#live [role=option]")
        assert page.get_attribute("#ask", "aria-expanded") == "true"
        assert page.inner_text("#say") == "8 hits"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        chosen = page.get_attribute("#ask", "aria-activedescendant")
        assert chosen == "live-2"
        assert page.get_attribute(f"#{chosen}", "aria-selected") == "true"
        title = page.inner_text(f"#{chosen} b")
        page.keyboard.press("Enter")
        page.wait_for_url("**/i/notes/**")
        assert page.inner_text("h1") == title


def test_escape_closes_the_hits_and_enter_searches(browser: Any, base: str) -> None:
    with tab(browser, base) as page:
        page.goto("/")
        page.fill("#ask", "copper")
        page.wait_for_selector("#live [role=option]")
        page.keyboard.press("Escape")
        assert page.is_hidden("#live")
        page.keyboard.press("Enter")
        page.wait_for_url("**/?q=copper")
        assert page.locator("article.hit").count() == 20


def test_keys_lead_through_the_results_and_can_be_switched_off(browser: Any, base: str) -> None:
    with tab(browser, base) as page:
        page.goto("/?q=kettle")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        first = page.inner_text("article.hit:first-of-type h2 a")
        assert page.evaluate("document.activeElement.textContent") == first
        page.keyboard.press("Enter")
        page.wait_for_url("**/i/notes/**")
        page.keyboard.press("g")
        page.keyboard.press("c")
        page.wait_for_url("**/connect")
        page.keyboard.press("?")
        assert page.is_visible("dialog#keys")
        page.uncheck("#single")
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.keyboard.press("Control+k")
        assert page.evaluate("document.activeElement.id") == "ask"
        assert page.url.endswith("/connect")


def test_an_address_is_copied(browser: Any, base: str) -> None:
    with tab(browser, base) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto("/i/notes/kettle-1")
        page.keyboard.press("y")
        page.wait_for_function("document.querySelector('#say').textContent === 'Copied'")
        assert page.evaluate("navigator.clipboard.readText()") == "notes://kettle-1"


def test_without_script_one_searches_narrows_reads_and_pages(browser: Any, base: str) -> None:
    with tab(browser, base, script=False, width=390) as page:
        page.goto("/")
        page.fill("#ask", "kettle")
        page.press("#ask", "Enter")
        page.wait_for_url("**/?q=kettle")
        page.click("text=More results")
        assert page.locator("article.hit").count() >= 10
        page.click("aside >> text=copper")
        assert page.locator(".chip").inner_text().startswith("copper")
        page.click("article.hit h2 a >> nth=0")
        assert page.locator("mark").count() >= 1
        assert page.is_hidden(".js")
        page.goto(SCREENS["long"])
        page.click("text=Page 2 →")
        assert "page 2 of" in page.inner_text(".props")


def test_a_deletion_and_its_undo_by_keyboard_alone(browser: Any, base: str) -> None:
    with tab(browser, base) as page:
        page.goto("/memories?thread=orders")
        page.keyboard.press("j")
        page.keyboard.press("j")
        text = page.evaluate("document.activeElement.textContent")
        page.keyboard.press("#")
        page.wait_for_selector("text=Deleted 1 memory.")
        assert page.locator(".rows").inner_text().count(text) == 0
        page.keyboard.press("u")
        page.wait_for_selector("text=Back again.")
        assert page.locator(f".rows >> text={text}").count() == 1
        assert "thread=orders" in page.url
        page.keyboard.press("j")
        page.keyboard.press("e")
        page.wait_for_url("**/memories/*#correct")


@pytest.mark.parametrize("script", [True, False])
def test_every_form_does_what_it_says(script: bool, browser: Any, base: str, tmp_path: Path) -> None:
    name = f"folder-{script}".lower()
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.md").write_text("# A")
    with tab(browser, base, script=script, width=390) as page:
        page.goto("/memories")
        page.click("summary")
        page.fill("#new-text", f"Written by hand, {script}.")
        page.fill("#new-tags", "hand")
        page.click("text=Store")
        page.wait_for_selector("text=Stored.")
        page.click(f"text=Written by hand, {script}.")
        page.fill("#correct-text", f"Corrected by hand, {script}.")
        page.click("text=Save")
        page.wait_for_selector("text=Corrected. Agents see it at once.")
        assert page.locator("del").count() >= 1
        page.fill("#correct-text", f"Replaced by hand, {script}.")
        page.click("text=Keep the old one")
        page.wait_for_selector("text=Replaced. The one before")
        page.click("text=Delete this memory")
        page.wait_for_selector("text=Deleted 1 memory.")
        page.click("text=Undo")
        page.wait_for_selector("text=Back again.")
        page.goto("/memories?tag=hand&state=all")
        for box in page.locator("input[name=number]").all():
            box.check()
        page.click("text=Delete selected")
        page.click("button.main")
        page.wait_for_selector("text=/Deleted \\d+ memories/")
        page.goto("/sources")
        page.fill("#root", str(tmp_path / name))
        page.click("text=Add and read it")
        page.wait_for_url(f"**/sources/one?name={name}")
        page.click("text=Describe it")
        page.fill("#text", "A folder for tests.")
        page.click("section#contexts button.main")
        page.wait_for_selector("text=A folder for tests.")
        page.click("button:has-text('Remove')")
        page.wait_for_selector("text=Nothing yet.")
        page.click("text=Sync now")
        page.wait_for_selector(".job")
        page.goto("/health")
        page.click("text=Check everything")
        page.wait_for_url("**/health")
        page.wait_for_selector(".job")


# 3. Nothing to complain about


@pytest.mark.parametrize("path", [path for name, path in SCREENS.items() if name not in ("gone", "missing", "wrong")])
def test_no_screen_breaks_its_policy_or_asks_another_server(path: str, browser: Any, base: str) -> None:
    with tab(browser, base) as page:
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.querySelectorAll('h1').length") == 1
