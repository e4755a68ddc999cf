"""Where vectors come from: selection, learning, search, and the training of a small classifier."""
