"""One of two plugins that provide the method ``same``; each also provides one of its own."""

from __future__ import annotations

from cglsuite import MethodSpec, hookimpl


@hookimpl
def cglsuite_methods() -> list[MethodSpec]:
    return [
        MethodSpec(name="same", summary="of clash-b", factory="clash_b:build"),
        MethodSpec(name="own-b", summary="only here", factory="clash_b:build"),
    ]


def build() -> str:
    return "b"
