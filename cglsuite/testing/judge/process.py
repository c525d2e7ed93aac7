"""The judge process, which reads specs (plain data), runs the checks of a method, and sends each finding."""

from __future__ import annotations

import io
import pickle
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cglsuite.base.traces import hide_memory
from cglsuite.host import Catalogue
from cglsuite.testing.apart import requests_on
from cglsuite.testing.findings import Finding
from cglsuite.testing.judge.sandbox import Sandbox
from cglsuite.testing.kinds.methods import judged

_SAFE = {
    "builtins": {"set", "frozenset", "object", "bool", "int", "float", "str", "tuple", "list", "dict"},
    "copyreg": {"_reconstructor", "__newobj__"},
    "pathlib": {"PosixPath"},
    "pathlib._local": {"PosixPath"},  # of Python 3.13
}
_OURS = ("cglsuite.specs", "cglsuite.host")


class _Specs(pickle.Unpickler):
    """An unpickler that accepts only specs and plugin records."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _SAFE.get(module, ()) or module.startswith(_OURS):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"a spec contains a {module}.{name}; expected plain values")


def main() -> None:
    """Serve requests on the socket in the first argument until it is closed."""
    hide_memory()
    with Sandbox() as method_sandbox:
        for blob, _, answer in requests_on(socket.socket(fileno=int(sys.argv[1]))):
            try:
                request = _Specs(io.BytesIO(blob)).load()
            except (pickle.UnpicklingError, AttributeError, TypeError) as error:
                answer(refused=str(error))
                continue
            catalogue, method_sandbox.path = Catalogue(request.pop("records"), request.pop("entries")), request.pop("path")

            def tell(finding: Finding, answer: Callable[..., None] = answer) -> None:
                answer(**asdict(finding))

            report = judged(request.pop("name"), catalogue, method_sandbox, on_finding=tell, **request)
            answer(provider=report.provider)


if __name__ == "__main__":
    main()
