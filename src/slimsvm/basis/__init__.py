"""Where vectors come from: selected rows, learning by gradients, reduced sets."""
