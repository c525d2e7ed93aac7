"""A check for methods that need exactly one class per item."""

from __future__ import annotations

from cglsuite import Method
from cglsuite.base.errors import NotApplicable


def check_single_labels(method: Method, what: str) -> None:
    """Check that every item has exactly one class.

    Args:
        what: the method's name and what it does with classes, as "icarl keeps exemplars of classes".

    Raises:
        NotApplicable: items have several labels, or targets.
    """
    kind = method.problem.kind
    if kind != "single-label":
        raise NotApplicable(f"{what} and needs exactly one label per item, but the items of this stream are {kind}")
