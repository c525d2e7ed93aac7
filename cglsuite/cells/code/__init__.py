"""The source code that can affect results, and its digests."""
