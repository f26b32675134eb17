"""The error that every piece of wrong input raises, and the warning about code of others."""


class InputError(ValueError):
    """Wrong input: the message names the argument, the rule it breaks, the value found and what to do."""


class PluginWarning(UserWarning):
    """A method that another package adds cannot be used: the message names it, its package and the reason."""
