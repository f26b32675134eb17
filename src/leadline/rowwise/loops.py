"""Compiled loops over rows of logits: softmax and what is read off it, without temporaries.

Rows are short, so a lane of the vector unit takes a row of its own: a few rows at a time are turned into columns in the
first-level cache, and every loop runs over these rows. All rows go through the same instructions wherever they stand in
an array, so that blocks, threads and their number change no digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Products may be added without rounding in between; nothing else is reordered.
_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "nogil": True, "cache": True, "error_model": "numpy"}
# Values along a row may be added in any order: each row is still treated alike wherever it stands.
_REORDERED: dict[str, Any] = _OPTIONS | {"fastmath": {"contract", "nnan", "nsz", "reassoc"}}
_LANES = 32  # rows at a time: enough to hide the latency of the arithmetic


def _reinterpretation(source: Any, target: Any, code: ir.Type) -> Any:
    """Return a compiled function that reads the bits of a 64-bit number as one of another type."""

    @intrinsic
    def reinterpret(typing_context: Any, value: Any) -> Any:
        del typing_context, value

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            return builder.bitcast(arguments[0], code)

        return target(source), generate

    return reinterpret


_float_of_bits = _reinterpretation(types.int64, types.float64, ir.DoubleType())
_bits_of_float = _reinterpretation(types.float64, types.int64, ir.IntType(64))


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _exp(x: Any) -> Any:
    """Return exp(x) for x <= 0 to the last bit or two, in arithmetic that compiles to vector instructions.

    exp(x) = 2^whole exp(part) with the part in [-log(2) / 2, log(2) / 2] by a minimax polynomial. Adding 1.5 2^52
    rounds to a whole number and leaves it in the lowest bits, from where it is moved into the exponent. Below -708,
    where numbers become denormal and processors slow, the value is held at 3e-308.
    """
    held = x if x > -708.0 else -708.0
    shifted = held * 1.4426950408889634 + 6755399441055744.0
    whole = shifted - 6755399441055744.0
    part = held - whole * 0.693147180369123816490
    part = part - whole * 1.90821492927058770002e-10
    square = part * part
    low = (1.0 + part) + square * (0.5000000000000019 + part * 0.1666666666666668)
    middle = 0.04166666666648795 + part * 0.008333333333319589
    middle = middle + square * (0.0013888888952352863 + part * 0.00019841269890076403)
    high = 2.4801485441561313e-05 + part * 2.755724088722987e-06
    high = high + square * (2.763265472252779e-07 + part * 2.5110049204818658e-08)
    fourth = square * square
    series = low + fourth * (middle + fourth * high)
    return _float_of_bits(_bits_of_float(series) + (_bits_of_float(shifted) << np.int64(52)))


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _turn(logits: Any, start: Any, scale: Any, bias: Any, columns: Any) -> Any:
    """Put some rows, scaled and with a bias, into columns, shape (c, lanes); return how many rows there were.

    Lanes that are left over repeat the last row.
    """
    count = min(_LANES, logits.shape[0] - start)
    for lane in range(count):
        row = logits[start + lane]
        for j in range(row.shape[0]):
            columns[j, lane] = row[j]
    for lane in range(count, _LANES):
        for j in range(columns.shape[0]):
            columns[j, lane] = columns[j, count - 1]
    for j in range(columns.shape[0]):
        column, moved = columns[j], bias[j]
        for lane in range(_LANES):
            column[lane] = column[lane] * scale + moved
    return count


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _find_top(columns: Any, highest: Any, top: Any) -> None:
    """Find the largest value of each lane and its place, the first of several; as a float, to fill a lane as well."""
    for lane in range(_LANES):
        highest[lane] = columns[0, lane]
        top[lane] = 0.0
    for j in range(1, columns.shape[0]):
        column, place = columns[j], float(j)
        for lane in range(_LANES):
            value, best, found = column[lane], highest[lane], top[lane]
            top[lane] = place if value > best else found
            highest[lane] = value if value > best else best


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _add_up(columns: Any, highest: Any, left_out: Any, total: Any) -> None:
    """Add up exp of each lane's values less the highest one, without that at one place."""
    for lane in range(_LANES):
        total[lane] = 0.0
    for j in range(columns.shape[0]):
        column, place = columns[j], float(j)
        for lane in range(_LANES):
            share = _exp(column[lane] - highest[lane])
            total[lane] += share if place != left_out[lane] else 0.0


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _add_up_entropy(columns: Any, highest: Any, total: Any) -> None:
    """Add up s exp(s) of each lane's values s less the highest one."""
    for lane in range(_LANES):
        total[lane] = 0.0
    for j in range(columns.shape[0]):
        column = columns[j]
        for lane in range(_LANES):
            exponent = column[lane] - highest[lane]
            total[lane] += _exp(exponent) * exponent


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _divide(columns: Any, highest: Any, total: Any) -> None:
    """Turn each lane's values into exp of them less the highest one, over their sum."""
    for lane in range(_LANES):
        total[lane] = 0.0
    for j in range(columns.shape[0]):
        column = columns[j]
        for lane in range(_LANES):
            share = _exp(column[lane] - highest[lane])
            column[lane] = share
            total[lane] += share
    for j in range(columns.shape[0]):
        column = columns[j]
        for lane in range(_LANES):
            column[lane] /= total[lane]


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def read(logits: Any, scale: Any, bias: Any, given: Any, classes: Any, own: Any, others: Any, entropy: Any) -> None:
    """Read off each row what softmax(scale logits + bias) says of one class.

    With s the exponents, zero for the largest: ``own`` is that of the class, ``others`` the sum of exp(s) over all
    other classes. The class is that of the largest value, which is then put into ``classes``, unless it is given there.
    Minus the entropy, ``sum of p log p``, is found where there is room for it.
    """
    columns = np.empty((logits.shape[1], _LANES))
    highest, top, of_class = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    total, along = np.empty(_LANES), np.empty(_LANES)
    for start in range(0, logits.shape[0], _LANES):
        count = _turn(logits, start, scale, bias, columns)
        _find_top(columns, highest, top)
        for lane in range(_LANES):
            if given:
                top[lane] = classes[start + min(lane, count - 1)]
            of_class[lane] = columns[int(top[lane]), lane] - highest[lane]
        _add_up(columns, highest, top, total)
        for lane in range(count):
            classes[start + lane] = int(top[lane])
            own[start + lane] = of_class[lane]
            others[start + lane] = total[lane]
        if entropy.shape[0] > 0:
            _add_up_entropy(columns, highest, along)
            for lane in range(count):
                rest = total[lane] + np.expm1(of_class[lane])  # of all classes but the largest
                entropy[start + lane] = along[lane] / (1.0 + rest) - np.log1p(rest)


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def log_softmax(logits: Any, scale: Any, result: Any) -> None:
    """Store log softmax(scale logits); the largest entry keeps its digits where the confidence is 1 to the last one."""
    c = logits.shape[1]
    columns, bias = np.empty((c, _LANES)), np.zeros(c)
    highest, top, rest = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    for start in range(0, logits.shape[0], _LANES):
        count = _turn(logits, start, scale, bias, columns)
        _find_top(columns, highest, top)
        _add_up(columns, highest, top, rest)
        for lane in range(count):
            row, less = result[start + lane], np.log1p(rest[lane])
            for j in range(c):
                row[j] = (columns[j, lane] - highest[lane]) - less


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def softmax(logits: Any, scale: Any, bias: Any, result: Any, log_total: Any) -> None:
    """Store softmax(scale logits + bias), and the logarithm of its denominator."""
    c = logits.shape[1]
    columns = np.empty((c, _LANES))
    highest, top, total = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    for start in range(0, logits.shape[0], _LANES):
        count = _turn(logits, start, scale, bias, columns)
        _find_top(columns, highest, top)
        _divide(columns, highest, total)
        for lane in range(count):
            row = result[start + lane]
            for j in range(c):
                row[j] = columns[j, lane]
            log_total[start + lane] = highest[lane] + np.log(total[lane])


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def top_two(logits: Any, given: Any, classes: Any, second: Any, odds: Any) -> None:
    """Find each row's top class, unless it is given, the runner-up, and the log-odds of the one against all others."""
    c = logits.shape[1]
    columns, bias = np.empty((c, _LANES)), np.zeros(c)
    highest, top, runner_up, total = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    best = np.empty(_LANES)
    for start in range(0, logits.shape[0], _LANES):
        count = _turn(logits, start, 1.0, bias, columns)
        _find_top(columns, highest, top)
        for lane in range(_LANES):
            if given:
                top[lane] = classes[start + min(lane, count - 1)]
            best[lane] = columns[int(top[lane]), lane]
            columns[int(top[lane]), lane] = -np.inf
        _find_top(columns, highest, runner_up)
        _add_up(columns, highest, top, total)
        for lane in range(count):
            classes[start + lane] = int(top[lane])
            second[start + lane] = int(runner_up[lane])
            odds[start + lane] = best[lane] - highest[lane] - np.log(total[lane])


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def assign(logits: Any, scale: Any, potentials: Any, labels: Any, kept: Any, reduced: Any, margins: Any) -> None:
    """Find the label of each row with the largest p + potential, p = softmax(scale logits).

    ``kept`` is p at that label, ``reduced`` the largest value, ``margins`` by how much it is above the next one.
    """
    c = logits.shape[1]
    columns, bias = np.empty((c, _LANES)), np.zeros(c)
    highest, top, total, best = np.empty(_LANES), np.empty(_LANES), np.empty(_LANES), np.empty(_LANES)
    for start in range(0, logits.shape[0], _LANES):
        count = _turn(logits, start, scale, bias, columns)
        _find_top(columns, highest, top)
        _divide(columns, highest, total)
        for j in range(c):
            column, potential = columns[j], potentials[j]
            for lane in range(_LANES):
                column[lane] += potential
        _find_top(columns, best, top)
        for lane in range(_LANES):
            columns[int(top[lane]), lane] = -np.inf
        _find_top(columns, highest, total)
        for lane in range(count):
            label = int(top[lane])
            labels[start + lane] = label
            kept[start + lane] = best[lane] - potentials[label]
            reduced[start + lane] = best[lane]
            margins[start + lane] = best[lane] - highest[lane]


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def hashes(bits: Any, factors: Any, mixed: Any) -> None:
    """Mix the bits of each row, shape (n, c), with odd factors, shape (c,), into 64 bits."""
    for i in range(bits.shape[0]):
        found = np.uint64(0)
        for j in range(bits.shape[1]):
            found += np.uint64(bits[i, j]) * factors[j]
            found ^= found >> np.uint64(29)
        mixed[i] = found


@njit(**_REORDERED)  # type: ignore[untyped-decorator]
def _move(row: Any, potentials: Any, scores: Any) -> Any:
    """Store a row with the potentials added; return the largest value, which the order of comparisons cannot change."""
    best = -np.inf
    for k in range(row.shape[0]):
        score = row[k] + potentials[k]
        scores[k] = score
        best = score if score > best else best
    return best


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _find_above(scores: Any, limit: Any, places: Any) -> Any:
    """Store the places of the values above a limit; return how many there are."""
    count = 0
    for k in range(scores.shape[0]):
        places[count] = k
        count += scores[k] > limit
    return count


@njit(**_REORDERED)  # type: ignore[untyped-decorator]
def _least(row: Any) -> Any:
    """Return the smallest value."""
    least = np.inf
    for k in range(row.shape[0]):
        least = row[k] if row[k] < least else least
    return least


@njit(**_REORDERED)  # type: ignore[untyped-decorator]
def _exponentials(scores: Any, best: Any, epsilon: Any, exponents: Any, amounts: Any) -> Any:
    """Store (scores - best) / epsilon and the exponentials; return the sum of these and the mean exponent."""
    scale, total, along = 1.0 / epsilon, 0.0, 0.0
    for a in range(scores.shape[0]):
        exponent = (scores[a] - best) * scale
        amount = _exp(exponent)
        exponents[a], amounts[a] = exponent, amount
        total += amount
        along += amount * exponent
    return total, along / total


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def _add_line(exponents: Any, amounts: Any, part: Any, along: Any, sums: Any) -> None:
    """Add a row's shares and their drift for all labels."""
    shares, drift = sums[0], sums[1]
    for k in range(amounts.shape[0]):
        shares[k] += part * amounts[k]
        drift[k] += part * amounts[k] * (exponents[k] - along)


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def find_alone(probabilities: Any, potentials: Any, reach: Any, labels: Any) -> None:
    """Find the label of each row with the largest p + potential; -1 where others come within reach of it."""
    c = probabilities.shape[1]
    scores, places = np.empty(c), np.empty(c, dtype=np.int64)
    for i in range(probabilities.shape[0]):
        best = _move(probabilities[i], potentials, scores)
        labels[i] = places[0] if _find_above(scores, best - reach, places) == 1 else -1


@njit(**_OPTIONS)  # type: ignore[untyped-decorator]
def add_shares(
    probabilities: Any, weights: Any, potentials: Any, epsilon: Any, negligible: Any, flat: Any,
    sums: Any, products: Any,
) -> None:  # fmt: skip
    """Add up where rows go at given potentials: w = softmax((p + potential) / epsilon).

    Most labels of a row have a share for their potentials alone: it is a v, with v_k = exp(potential_k / epsilon) and
    one number a for each row. With d = w - a v, which is left out where p is above the row's smallest by no more than
    ``flat`` epsilon, the products w w' are d d' + a (d v' + v d') + a^2 v v', of which only the first is a matrix.

    Parameters
    ----------
    sums
        Shape (5, c): the shares, their drift, a d, and in the first places of two more lines a^2 and the smoothed
        largest values of p + potential; the largest v is 1.
    products
        Shape (c, c), of which the half below the diagonal is used: d d'.
    """
    c = probabilities.shape[1]
    scores, exponents, amounts = np.empty(c), np.empty(c), np.empty(c)
    places, apart = np.empty(c, dtype=np.int64), np.empty(c, dtype=np.int64)
    highest = potentials.max()
    for i in range(probabilities.shape[0]):
        row, weight = probabilities[i], weights[i]
        best = _move(row, potentials, scores)
        count = _find_above(scores, best - negligible * epsilon, places)
        if count == 1:
            sums[0, places[0]] += weight
            sums[4, 0] += weight * best
            continue
        many = 4 * count > c
        if many:  # all labels in their order are faster than some of them
            count = c
        for a in range(count):
            places[a] = a if many else places[a]
            scores[a] = scores[places[a]]
        total, along = _exponentials(scores[:count], best, epsilon, exponents, amounts)
        part = weight / total
        if many:
            _add_line(exponents, amounts, part, along, sums)
        else:
            for a in range(count):
                sums[0, places[a]] += part * amounts[a]
                sums[1, places[a]] += part * amounts[a] * (exponents[a] - along)
        least = _least(row)
        level = _exp((least + highest - best) / epsilon) / total
        sums[4, 0] += weight * (best + epsilon * np.log(total))
        sums[3, 0] += weight * level * level
        n_apart = 0
        for a in range(count):
            apart[n_apart] = a
            n_apart += row[places[a]] - least > flat * epsilon
        for a in range(n_apart):
            k = places[apart[a]]
            rest = amounts[apart[a]] / total * (1.0 - _exp((least - row[k]) / epsilon))
            sums[2, k] += weight * level * rest
            places[a], amounts[a] = k, rest
        for a in range(n_apart):
            line, amount = products[places[a]], weight * amounts[a]
            for b in range(a):
                line[places[b]] += amount * amounts[b]
