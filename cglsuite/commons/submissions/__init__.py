"""Records of third parties: the checks before they are accepted, and the marks that say what was verified.

``checks`` looks at one record, ``review`` at the sample and all of it, ``staging`` at files. ``docs/how-to/submit-results.md`` describes
each check.
"""
