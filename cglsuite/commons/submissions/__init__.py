"""Review records submitted by third parties: check them before they are accepted, and mark what was verified.

``staging`` reads the files, ``checks`` checks single records, and ``review`` checks the whole submission and reruns a sample.
``docs/how-to/submit-results.md`` describes each check.
"""
