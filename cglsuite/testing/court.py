"""The judge's own process: it reads specs, which are data, runs the checks of a method, and writes down each finding."""

from __future__ import annotations

import io
import json
import pickle
import socket
import sys
from dataclasses import asdict
from typing import Any

from cglsuite.base.traces import hide_memory
from cglsuite.host import Catalogue
from cglsuite.testing.findings import Finding
from cglsuite.testing.judge.bench import Bench
from cglsuite.testing.kinds.methods import judged

__all__ = ["main"]

_SAFE = {
    "builtins": {"set", "frozenset", "object", "bool", "int", "float", "str", "tuple", "list", "dict"},
    "copyreg": {"_reconstructor", "__newobj__"},
    "pathlib": {"PosixPath"},
    "pathlib._local": {"PosixPath"},  # of Python 3.13
}
_OURS = ("cglsuite.specs", "cglsuite.host")


class _Specs(pickle.Unpickler):
    """Reads specs and plugin records, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _SAFE.get(module, ()) or module.startswith(_OURS):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"a spec holds a {module}.{name}; expected plain values")


def main() -> None:
    """Judge what arrives on the socket whose descriptor is the first argument, until it is closed."""
    hide_memory()
    line = socket.socket(fileno=int(sys.argv[1]))
    requests = line.makefile("rb")
    with Bench() as bench:
        while head := requests.read(17):  # as in cglsuite.testing.apart: the size, whose turn it is, and what is of no use here
            blob, turn = requests.read(int.from_bytes(head[:8], "big")), head[8:16].hex()
            try:
                asked = _Specs(io.BytesIO(blob)).load()
            except (pickle.UnpicklingError, AttributeError, TypeError) as error:
                line.sendall(json.dumps({"turn": turn, "refused": str(error)}).encode() + b"\n")
                continue
            catalogue, bench.path = Catalogue(asked.pop("records"), asked.pop("entries")), asked.pop("path")

            def tell(finding: Finding, turn: str = turn) -> None:
                line.sendall(json.dumps({"turn": turn, **asdict(finding)}).encode() + b"\n")

            report = judged(asked.pop("name"), catalogue, bench, seen=tell, **asked)
            line.sendall(json.dumps({"turn": turn, "provider": report.provider}).encode() + b"\n")


if __name__ == "__main__":
    main()
