"""Changes to good bytes that need no guide: flipped bits, cuts, and pieces put elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


def mutations(seeds: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield changed copies of seeds, for ever: mostly one flipped bit, which checks of whole fields let through."""
    rng = np.random.default_rng(seed)
    while True:
        data = bytearray(seeds[int(rng.integers(len(seeds)))])
        how = rng.integers(11)
        place = int(rng.integers(max(len(data), 1)))
        other = int(rng.integers(place, len(data) + 1))
        if how < 6 and data:
            data[place] ^= 1 << int(rng.integers(8))
        elif how == 6:
            data[place:] = b""
        elif how == 7:
            data[place:other] = b""
        elif how == 8:
            data[place:place] = data[place:other]
        elif how == 9:
            data[place : place + 4] = rng.bytes(4)
        else:
            data[place:other] = rng.bytes(other - place)
        yield bytes(data)
