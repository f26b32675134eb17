"""The error of a message that did not arrive."""


class DeliveryError(Exception):
    """A message did not arrive; the reason is in words and holds no secret."""
