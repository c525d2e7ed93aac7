"""Build a results folder's leaderboard as static pages from its records, with verified and unverified records separated."""
