"""A headless Chromium for tests of pages, through Selenium: Debian's packages ``chromium`` and ``chromium-driver``.

It records what a page writes to the console and what it asks for over any protocol, and no name but this machine's resolves in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["AXE_HOW_TO_INSTALL", "HOW_TO_INSTALL", "Browser", "axe_source", "started"]

ROOT = Path(__file__).resolve().parents[2]
HOW_TO_INSTALL = "python -m pip install selenium, and on Debian: apt-get install chromium chromium-driver"
AXE_HOW_TO_INSTALL = "npm install --no-save axe-core in the checkout, or AXE_CORE=/path/to/axe.min.js"
_SWITCHES = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost",
)


class Browser:
    """One window. ``driver`` is Selenium's; the rest is what tests of pages ask for."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, *, width: int = 1200, dark: bool = False, place: str = "") -> None:
        """Show a file in a window of this width (as a phone below 600) and colour scheme; what came before is forgotten."""
        self.driver.get("about:blank")
        self.console(), self.requests()
        self._tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._tell("Emulation.setEmulatedMedia", features=[scheme])
        self.driver.get(page.absolute().as_uri() + place)

    def run(self, script: str, *given: Any) -> Any:
        """What a script returns that is run in the page."""
        return self.driver.execute_script(script, *given)

    def run_before_pages(self, script: str) -> None:
        """Run a script in every page from now on, before any of its own."""
        self._tell("Page.addScriptToEvaluateOnNewDocument", source=script)

    def print_media(self, *, landscape: bool) -> int:
        """Show the page as on A4 with margins of 1.2 cm, and return the width of the printed area in pixels."""
        width = int((297 if landscape else 210) / 25.4 * 96 - 2 * 12 / 25.4 * 96)
        self._tell("Emulation.setEmulatedMedia", media="print")
        self._tell("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        return width

    def violations(self, axe: str) -> dict[str, list[str]]:
        """What axe-core finds in the page, by rule: the elements, as selectors."""
        self.run(axe)
        found = self.driver.execute_async_script("axe.run(document, {resultTypes: ['violations']}).then(arguments[0])")
        return {rule["id"]: [" ".join(map(str, node["target"])) for node in rule["nodes"]] for rule in found["violations"]}

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> Any:
        """The element that has the focus."""
        return self.driver.switch_to.active_element

    def all(self, selector: str) -> list[Any]:
        """The elements of a CSS selector."""
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def one(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def download_to(self, folder: Path) -> None:
        """Save downloads here without asking."""
        self._tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def console(self) -> list[str]:
        """What was written to the console since the last call: errors, warnings, refusals by the page's policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses that pages have asked for since the last call, beginning with their own."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def _tell(self, command: str, **words: Any) -> None:
        self.driver.execute_cdp_cmd(command, words)


def axe_source() -> str:
    """The source of axe-core, which comes from npm; where it is not here, the test is skipped with what would install it."""
    named = os.environ.get("AXE_CORE")
    path = Path(named) if named else ROOT / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip(f"needs axe-core ({path} is absent): {AXE_HOW_TO_INSTALL}")
    return path.read_text(encoding="utf-8")


@contextlib.contextmanager
def started() -> Iterator[Browser]:
    """A browser that ends with the block; where there is none, the test is skipped with what would install one."""
    selenium = pytest.importorskip("selenium.webdriver", reason=f"needs Selenium and Chromium: {HOW_TO_INSTALL}")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip(f"needs chromium and chromedriver on the path: {HOW_TO_INSTALL}")
    options = selenium.ChromeOptions()
    options.binary_location = binary
    for switch in (*_SWITCHES, *(["--no-sandbox"] if os.geteuid() == 0 else [])):  # root has no sandbox
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    try:
        yield Browser(window)
    finally:
        window.quit()
