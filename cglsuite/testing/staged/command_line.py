"""Run the command given by the first argument under the name given by the second, pass on the other arguments, and print the outcome."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pkgutil import resolve_name

if __name__ == "__main__":
    factory, name, *words = sys.argv[1:]
    answers, imported, output, errors = os.dup(1), io.StringIO(), io.StringIO(), io.StringIO()
    os.dup2(2, 1)  # output that bypasses sys.stdout is not part of the answer
    with contextlib.redirect_stdout(imported), contextlib.redirect_stderr(imported):
        command = resolve_name(factory)
    status: object = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            command.main(args=words, prog_name=f"cglsuite {name}")
        except SystemExit as end:
            status = end.code or 0
    parts = {"output": output, "errors": errors, "imported": imported}
    answer = {"status": status, "torch": "torch" in sys.modules, **{part: text.getvalue() for part, text in parts.items()}}
    os.write(answers, json.dumps(answer, default=str).encode() + b"\n")
