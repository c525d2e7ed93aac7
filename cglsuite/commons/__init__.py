"""Sharing results: publish, pull, merge, submit, and the hosted board."""
