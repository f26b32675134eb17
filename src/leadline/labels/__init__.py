"""A few labels: which rows to label, and what they and the estimate say together, whatever the shift."""
