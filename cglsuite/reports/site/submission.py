"""The report on a submission as a page: what was verified, unverified or refused, record by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from cglsuite.base.markup import Content, Fragment, element, join
from cglsuite.reports.kit.tables import definition_list, framed, label, number, words
from cglsuite.reports.kit.text import badge, notice, tile
from cglsuite.reports.rendering.page import Page, asset, document_html
from cglsuite.reports.site.index import part

_BADGES = {"verified": "good", "unverified": "note", "noted": "note", "refused": "bad"}
_MOST = 2000
_CHECKS = {
    "file": "a regular file of bounded size that is named after its key",
    "schema": "every field has its type, and this version knows the schema",
    "digest": "the content is as it was written",
    "names": "names are names, and no text controls a terminal or hides other text",
    "status": "the cell has finished",
    "duplicates": "one result per cell",
    "key": "the key follows from the names, settings and seeds of the record",
    "cell": "the shown preset and the switches of the scenario follow from the settings",
    "bounds": "every entry of the matrix is possible",
    "metrics": "the metrics follow from the matrix",
    "timings": "times and sizes are possible; they stay the submitter's word",
    "check": "the method passes cglsuite check here",
    "rerun": "this record, or one that differs from it in its seeds alone, was rerun here with the same result",
    "orders": "no repetition is missing",
    "merge": "the results folder has no other result of the cell",
}


def submission_html(report: Mapping[str, Any]) -> str:
    """The page of a report (:meth:`cglsuite.commons.submissions.review.Review.to_json`)."""
    records: Sequence[Mapping[str, Any]] = report["records"]
    summary = report["summary"]
    options = report["options"]
    facts: dict[Content, Content] = {
        "submission": report["submission"],
        "into": report["into"],
        "reviewed": f"{report['when']}, by cglsuite {report['cglsuite']}",
        "on": "; ".join(f"{name} {value}" for name, value in report["here"].items() if value is not None),
        "reruns": f"a sample of {options['sample']}, drawn with seed {options['seed']}; "
        + ("to the bit" if options["tolerance"] is None else f"entries of the matrix within {options['tolerance']:g}"),
    }
    tiles = [tile(summary[name], name) for name in ("verified", "unverified", "refused")]
    head = element(
        "header",
        element("h1", "Report on a submission"),
        element("ul", *tiles, class_="tiles"),
        definition_list(facts.items()),
        *(notice(text) for text in report["notes"]),
    )
    parts = [head, part("checks", "What was checked", _checks(records)), part("records", "Record by record", _records(records))]
    return document_html(Page(title="Report on a submission", footer=(f"Review {report['review']}",)), join(parts), css=asset("site.css"))


def _checks(records: Iterable[Mapping[str, Any]]) -> Fragment:
    counts: dict[str, Counter[str]] = {}
    for record in records:
        for finding in record["findings"]:
            counts.setdefault(finding["check"], Counter())[finding["verdict"]] += 1
    columns = [
        label("check", lambda row: row[0]),
        *(number(verdict, partial(_counted, verdict=verdict), zero=False) for verdict in _BADGES),
        words("what it says", lambda row: _CHECKS.get(row[0], ""), "long"),
    ]
    return framed(counts.items(), columns)


def _counted(row: tuple[str, Counter[str]], verdict: str) -> int:
    return row[1][verdict]


def _records(records: Sequence[Mapping[str, Any]]) -> Fragment:
    """A row per record, refused ones first, with every finding that is not simply in order."""
    order = list(_BADGES)[::-1]
    shown = sorted(records, key=lambda record: order.index(record["outcome"]))[:_MOST]
    left = len(records) - len(shown)
    caption = f"The first {_MOST:,} of {len(records):,} records; report.json has them all." if left else None
    columns = [
        label("record", lambda record: record["label"] or "no record"),
        words("outcome", lambda record: badge(record["outcome"], _BADGES[record["outcome"]])),
        words("rerun", lambda record: record["rerun"] or "–", "nowrap"),
        words("file", lambda record: element("code", record["file"]), "long"),
        words("findings", _findings, "long"),
    ]
    return framed(shown, columns, caption)


def _findings(record: Mapping[str, Any]) -> Fragment:
    findings = [finding for finding in record["findings"] if finding["verdict"] != "verified"]
    badges = (
        (badge(finding["check"], _BADGES[finding["verdict"]]), f" {finding['reason']}" if finding["reason"] else None)
        for finding in findings
    )
    return join(element("div", *content) for content in badges)
