"""What goes in: a classifier's outputs, from memory and from files."""
