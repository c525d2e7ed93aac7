"""Mistakes of plugin authors: each is told with its place, what was given and expected, and the fix, in the words of the docs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from mistakes import MISTAKES, PAGE, Mistake, said, table

from cglsuite.testing.judge.sandbox import Sandbox

pytestmark = pytest.mark.plugins


@pytest.fixture(scope="module")
def method_sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


@pytest.mark.sampled(26)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title.replace(" ", "-"))
def test_a_mistake_is_told_with_its_place_and_its_fix(mistake: Mistake, method_sandbox: Sandbox) -> None:
    one = said(mistake, method_sandbox)
    assert mistake.given in one.message
    assert mistake.expected in f"{one.message} | {one.fix}"
    assert re.search(r"\.py(:\d+$|, line \d+$|$)", one.place), one.place
    assert one.fix or (mistake.check == "growing head" and "set self.head to" in one.message)  # skipped, since it is allowed


def test_there_are_enough() -> None:
    assert len({mistake.title for mistake in MISTAKES}) == len(MISTAKES) >= 25


@pytest.mark.nightly
def test_the_docs_hold_the_same_words(method_sandbox: Sandbox) -> None:
    """After a change of a message: ``python tests/tools/mistakes.py``."""
    assert PAGE.read_text(encoding="utf-8").endswith(table(method_sandbox))
