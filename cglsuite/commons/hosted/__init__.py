"""A results folder's leaderboard as static pages to host, made from records alone, with verified and unverified ones separated."""
