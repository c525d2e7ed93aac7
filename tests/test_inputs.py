"""Numbers, truth values and texts as people write them."""

from __future__ import annotations

import pytest

from cglsuite.base.inputs import truth_value


@pytest.mark.parametrize("word", ["true", "yes", "1", "on", "True", " YES "])
def test_words_for_true(word: str) -> None:
    assert truth_value(word) is True


@pytest.mark.parametrize("word", ["false", "no", "0", "off", "False", " NO "])
def test_words_for_false(word: str) -> None:
    assert truth_value(word) is False


@pytest.mark.parametrize("given", ["", "maybe", "10", 1, 0, None])
def test_what_is_neither(given: object) -> None:
    with pytest.raises(ValueError, match="expected true or false"):
        truth_value(given)
