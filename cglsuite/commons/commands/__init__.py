"""Commands for results that several people share."""
