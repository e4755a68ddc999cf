"""Models in C on small processors: bytes, stack, instructions and answers, beside other generators of C."""
