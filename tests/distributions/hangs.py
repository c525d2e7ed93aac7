"""Never comes back from a hook."""

from __future__ import annotations

import time
from typing import Any

from cglsuite import hookimpl


@hookimpl
def cglsuite_methods() -> list[Any]:
    time.sleep(3600)
    return []
