"""Tables of the papers that the library implements, computed anew: one file for each paper."""
