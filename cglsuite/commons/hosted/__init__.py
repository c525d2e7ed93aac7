"""The leaderboard of a results folder as static pages to host: from records alone, verified and unverified ones apart."""
