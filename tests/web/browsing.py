"""Chromium for the tests of the page: the system's own, on loopback, with nothing that calls home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needs import NODE, missing

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_SUM = """async (rules) => {
  const told = await axe.run(document, {runOnly: {type: "tag", values: rules}});
  return told.violations.map(v => `${v.id}: ${v.help}: ${v.nodes.map(n => n.html).join(" | ")}`);
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Lend a browser for a block; the test is skipped where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        missing("Chromium is not installed. Run `make packages`.")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed. Run `make test`, which installs it.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS])
        try:
            yield browser
        finally:
            browser.close()


def axe() -> str:
    """Return the script that looks for what not everybody can use."""
    script: Path = NODE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        missing("axe-core is not installed. Run `make node`.")
    return script.read_text(encoding="utf-8")


def violations(page: Any, script: str) -> list[str]:
    """Return what is wrong with the open page, a line each. Its context has to bypass the policy."""
    page.evaluate(script)
    told: list[str] = page.evaluate(_SUM, RULES)
    return told


@contextmanager
def tab(
    browser: Any, base: str, *, scheme: str = "light", width: int = 1280, script: bool = True, expected: str = ""
) -> Iterator[Any]:
    """Lend a page whose complaints fail the test: of the policy, of a script, of a request to anywhere else.

    `expected` is a part of those that do not count.
    """
    context = browser.new_context(
        base_url=base, color_scheme=scheme, viewport={"width": width, "height": 800}, java_script_enabled=script
    )
    complaints: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith((base, "data:")) else complaints.append(asked.url))
    page.set_default_timeout(10_000)
    try:
        yield page
    finally:
        context.close()
    assert not [complaint for complaint in complaints if not expected or expected not in complaint]
