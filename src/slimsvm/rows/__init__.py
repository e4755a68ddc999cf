"""Where rows live, and the one way to ask them: passes that return sums."""
