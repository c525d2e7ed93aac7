"""Prints at import and in a hook, which must not mix with a command's data."""

from __future__ import annotations

from cglsuite import MethodSpec, hookimpl

print("hello from the plugin")


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    print("asked")
    return [MethodSpec(name="loud", summary="says\nhello\x1b[31m in red", factory="chatty:build")]
