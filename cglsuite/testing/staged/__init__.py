"""What checks run in other processes: the listing of a plugin, cells that behave as asked, and a tiny campaign."""
