"""The error that every piece of wrong input raises."""


class InputError(ValueError):
    """Wrong input: the message names the argument, the rule it breaks, the value found and what to do."""
