"""Modules that checks run in separate processes, such as listing a plugin, cells with prescribed behaviour, and a tiny campaign."""
