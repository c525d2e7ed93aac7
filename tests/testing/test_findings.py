"""What a report of conformance checks shows of itself."""

from __future__ import annotations

from html_shape import EVIL, EVIL_SHOWN, Shape

from cglsuite.testing.findings import CheckReport, Finding


def test_a_report_shows_failures_first_and_escapes_all_texts() -> None:
    findings = (
        Finding(check="factory", status="ok"),
        Finding(check="levels", status="skipped", where="tiny/task-il@test-1", message="not declared"),
        Finding(check="learns", status="failed", where="tiny/class-il@test-1", message=EVIL, fix=EVIL),
    )
    shape = Shape(CheckReport(kind="method", name="x", provider="p 1.0", findings=findings)._repr_html_())
    assert "method x does not conform" in shape.text
    assert (
        f"failed\nlearns\ntiny/class-il\n{EVIL_SHOWN}\n{EVIL_SHOWN}\nskipped\nlevels\ntiny/task-il\nnot declared\nok\nfactory\n"
        in shape.text
    )
    assert "img" not in shape.tags
    assert "method x conforms" in Shape(CheckReport(kind="method", name="x", provider="p", findings=findings[:2])._repr_html_()).text
