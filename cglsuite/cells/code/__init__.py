"""Digests of the source code that can affect results."""
