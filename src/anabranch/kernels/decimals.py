"""Exact integers wider than numpy's: decimal128 and int64 columns as 32-bit limbs, and decimal averages.

A limb array holds one column of int64 per 32-bit digit, the last one signed. Limbs of up to 2**31 values can be added
in any order without overflow, so prefix sums over them are exact; `from_limbs` carries and checks the range once.

Known limits: averages whose total does not fit int64 run through Python integers, about 1 µs each.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.errors import QueryFailed
from anabranch.kernels import engine
from anabranch.kernels.engine import Ints

LOW = 0xFFFFFFFF


def _words(array: pa.Array) -> npt.NDArray[np.int64]:
    """decimal128 as rows of two 64-bit words, the low one first; NULLs hold anything."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros((len(array), 2), np.int64)
    return np.frombuffer(buffer, np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]


def to_limbs(column: pa.ChunkedArray) -> Ints:
    """(rows, limbs) of an integer or decimal column, NULL as 0."""
    array = engine.whole(column)
    valid = np.asarray(array.is_valid())
    if pa.types.is_decimal(array.type):
        low, high = _words(array).T
        limbs = np.stack([low & LOW, (low >> 32) & LOW, high & LOW, high >> 32], axis=1)
    else:
        values = np.asarray(engine.encode(pa.chunked_array([array.fill_null(0)])).cast(pa.int64()))
        limbs = np.stack([values & LOW, values >> 32], axis=1)
    return np.where(valid[:, None], limbs, 0)


def from_limbs(limbs: Ints, kind: pa.DataType, null: npt.NDArray[np.bool_]) -> pa.Array:
    """The values of type `kind` that summed limbs stand for; a value out of range is an error."""
    digits = limbs.copy()
    for place in range(digits.shape[1] - 1):
        digits[:, place + 1] += digits[:, place] >> 32
        digits[:, place] &= LOW
    top = digits[:, -1]
    if np.any((top < -(2**31)) | (top >= 2**31)):
        raise engine.overflow(f"more than {32 * digits.shape[1]} bits")
    if not pa.types.is_decimal(kind):
        values = digits[:, 0] | (digits[:, 1] << 32)
        return engine.whole(engine.decode(pa.chunked_array([pa.array(values, mask=null)]), kind))
    words = np.stack([digits[:, 0] | (digits[:, 1] << 32), digits[:, 2] | (digits[:, 3] << 32)], axis=1)
    return _decimal(words, kind, null)


def _decimal(words: Ints, kind: pa.DataType, null: npt.NDArray[np.bool_]) -> pa.Array:
    words = np.ascontiguousarray(np.where(null[:, None], 0, words))
    limit = 10**kind.precision
    low, high = words.T
    small = min(limit, 2**63 - 1)
    fits = (high == low >> 63) & (low > -small) & (low < small)
    # Only what is near the limit by its high word needs a look at all its digits.
    for low_word, high_word in words[~fits & ((high >= limit >> 64) | (high <= -(limit >> 64)))].tolist():
        if not -limit < (high_word << 64) + (low_word & (2**64 - 1)) < limit:
            raise engine.overflow(f"a decimal of more than {kind.precision} digits")
    validity = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(kind, len(words), [validity, pa.py_buffer(words)])


def average(total: pa.ChunkedArray, count: Ints, precision: int, scale: int) -> pa.Array:
    """total / count as decimal(precision, scale), rounded HALF_UP; NULL where there is no total or no row."""
    array = engine.whole(total)
    null = np.asarray(array.is_null()) | (count == 0)
    up, down = 10 ** max(0, scale - array.type.scale), 10 ** max(0, array.type.scale - scale)
    out = np.zeros((len(array), 2), np.int64)
    limit = 10**precision
    low_words, high_words = _words(array).T
    room = 2**62 // max(up, 1)
    narrow = ~null & (high_words == low_words >> 63) & (low_words > -room) & (low_words < room)
    if room and down == 1 and len(array):  # nearly always: what fits int64 is divided there
        whole = np.abs(low_words[narrow]) * up
        each = count[narrow]
        rest = whole % each
        whole = whole // each + (rest >= each - rest)
        out[narrow, 0] = np.where(low_words[narrow] < 0, -whole, whole)
        out[narrow, 1] = out[narrow, 0] >> 63
    else:
        narrow[:] = False
    places = np.flatnonzero(~null & ~narrow)
    answers = []
    for (low, high), n in zip(_words(array)[places].tolist(), count[places].tolist(), strict=True):
        value = ((high << 64) + (low & (2**64 - 1))) * up
        whole, rest = divmod(abs(value), n * down)
        whole += 2 * rest >= n * down
        if whole >= limit:
            raise QueryFailed(f"an average does not fit decimal({precision}, {scale})")
        answers.append((whole if value >= 0 else -whole).to_bytes(16, "little", signed=True))
    if answers:
        out[places] = np.frombuffer(b"".join(answers), np.int64).reshape(-1, 2)
    return _decimal(out, pa.decimal128(precision, scale), null)
