"""What the methods declare of themselves, by category; nothing here needs torch."""
