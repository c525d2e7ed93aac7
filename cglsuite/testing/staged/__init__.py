"""Modules that checks run in other processes, such as the listing of a plugin, cells with prescribed behaviour, and a tiny campaign."""
