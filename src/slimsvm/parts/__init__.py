"""The parts that a method is made of: declarations only, a list ALL in each file."""
