"""Where vectors come from: selection from the rows, learning by gradients, reduced sets, distillation."""
