"""The one table of what is attacked."""

from __future__ import annotations

from fuzz import files, network, numbers, stored, texts, ways
from fuzz.target import MakeTarget

#: By name, in the order in which they are attacked: the one place to add another.
TARGETS: dict[str, MakeTarget] = (
    files.TARGETS | texts.TARGETS | stored.TARGETS | network.TARGETS | numbers.TARGETS | ways.TARGETS
)
