"""Signing in with a browser, whose own headers decide whether a form counts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from browsing import axe, chromium, tab, violations

from commonplace.store.accounts import FILE
from commonplace.store.sqlite.accounts import Accounts
from serving import environment_of, process


@pytest.mark.parametrize("script", [True, False])
def test_a_person_signs_in_reads_and_signs_out(script: bool, tmp_path: Path) -> None:
    with closing(Accounts(tmp_path / FILE)) as accounts:
        accounts.add_user("alice")
        key = accounts.create_key("alice", ("read",))
    with process(environment_of(tmp_path, COMMONPLACE_AUTH="keys")) as server, chromium() as browser:
        base = server.address.removesuffix("/mcp")
        with tab(browser, base, script=script, width=390, expected="status of 401") as page:
            page.goto("/memories")
            page.wait_for_url("**/login?next=**")
            page.fill("#key", "cp_wrong")
            page.press("#key", "Enter")
            page.wait_for_selector("#problem")
            assert page.get_attribute("#key", "aria-describedby") == "problem"
            page.fill("#key", key)
            page.press("#key", "Enter")
            page.wait_for_url("**/memories")
            assert "signed in as alice, to read" in page.inner_text("footer")
            assert page.locator("main form").count() == 0
            page.click("text=Sign out")
            page.wait_for_url("**/login")
            page.goto("/")
            page.wait_for_url("**/login")


def test_axe_finds_nothing_where_one_signs_in(tmp_path: Path) -> None:
    checker = axe()
    with process(environment_of(tmp_path, COMMONPLACE_AUTH="keys")) as server, chromium() as browser:
        context = browser.new_context(base_url=server.address.removesuffix("/mcp"), bypass_csp=True)
        page = context.new_page()
        for path in ("/login", "/connect"):
            page.goto(path)
            assert violations(page, checker) == []
        page.goto("/login")
        page.fill("#key", "cp_wrong")
        page.press("#key", "Enter")
        page.wait_for_selector("#problem")
        assert violations(page, checker) == []
        context.close()
