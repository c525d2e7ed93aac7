"""How a page looks and behaves in a browser, whatever is on it: widths, colour schemes, contrast, silence."""

from __future__ import annotations

import re
from pathlib import Path

from chromium import Browser

__all__ = ["LOOKS", "assert_silent_and_readable", "contrast"]

LOOKS = [(420, False), (420, True), (1200, False), (1200, True)]
"""Widths in pixels, of a phone and a desk, each light and dark."""
SMALLEST_CONTRAST = 4.5
"""WCAG 2.2, success criterion 1.4.3, for text of ordinary size."""
CONTRASTS = """
const seen = new Map();
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const ground = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
for (const fold of document.querySelectorAll("details")) fold.open = true;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || element.closest("script, style") || !element.getClientRects().length) continue;
  const pair = [parse(getComputedStyle(element).color).slice(0, 3), ground(element).slice(0, 3)];
  seen.set(JSON.stringify(pair), [...pair, walker.currentNode.textContent.trim().slice(0, 40)]);
}
return [...seen.values()];
"""


def assert_silent_and_readable(browser: Browser, page: Path, width: int, dark: bool) -> None:
    """Nothing on the console, no request but for the page itself, nothing beyond the window's edge, text that stands out."""
    browser.open(page, width=width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    found = browser.run(CONTRASTS)
    assert len(found) >= 2
    poor = {text: round(contrast(ink, ground), 2) for ink, ground, text in found if contrast(ink, ground) < SMALLEST_CONTRAST}
    assert not poor
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 3 * 128) == dark
    assert browser.run("return document.documentElement.scrollWidth") <= width  # with all folds open too
    assert browser.console() == []
    assert [address for address in browser.requests() if not address.startswith("data:")] == [page.absolute().as_uri()]


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast ratio of two sRGB colours (WCAG 2.2)."""

    def luminance(colour: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)
