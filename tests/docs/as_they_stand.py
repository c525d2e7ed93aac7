"""The pages of docs/, followed word by word: whole campaigns with their reports, all checks, the tests of the packages that pages write.

Not collected by default, since it takes some minutes per page: ``tox -e docs`` runs it, and so does ``pytest tests/docs/as_they_stand.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from doc_blocks import ROOT, Reader, blocks, pages

SHORTENED = re.compile(r"^cglsuite (cell|run|report|check)|^pytest", re.MULTILINE)
WHOLE = [page for page in pages() if any(b.language == "bash" and not b.parsed and SHORTENED.search(b.text) for b in blocks(page))]


@pytest.mark.plugins
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", WHOLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_followed(page: Path, reader: Callable[[bool], Reader]) -> None:
    follower = reader(True)
    for block in blocks(page):
        follower.follow(block)
    assert follower.shortened == []
