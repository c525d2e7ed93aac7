"""Share results: publish, pull, merge and submit records, and build a hosted leaderboard."""
