"""One of two plugins that provide the method ``same``; each also provides one of its own."""

from __future__ import annotations

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    return [
        MethodSpec(name="same", summary="of clash-a", factory="clash_a:build"),
        MethodSpec(name="own-a", summary="only here", factory="clash_a:build"),
    ]


def build() -> str:
    return "a"
