"""Tables of the papers behind the methods, one script each. ``slimsvm papers`` replaces them."""
