"""The interpreter of Avro programs: one source for plain Python and, by way of `kernel`, for numba.

Plain Python serves small files, which are read before numba would have been imported. An instruction is four
numbers: the operation and its operands. All columns share three arenas (words, their validity, characters); a
column's place in them, and how much of it is used, is in `columns`. A negative position states what is
wrong, so that every step needs one comparison.
"""

from __future__ import annotations

from typing import Any

OP_WIDTH = 4
(
    END, JUMP, UNION, OPEN, NEXT, MARK, REFUSE, SKIP_NUMBER, SKIP_BYTES, SKIP_FIXED,
    LONG, BOOLEAN, BYTES, FIXED, RAW, NULL, LIST, PAIRS_OF_LONGS, PAIRS_OF_BYTES,
) = range(19)  # fmt: skip

BASE, ROOM, COUNT, CHAR_BASE, CHAR_ROOM, CHAR_COUNT = range(6)  # of a column
COLUMN_WIDTH = 6
SPARE = 8  # unused bytes after a column's own, so that whole words may be copied
AT, LEFT, NEED, NEED_WORDS, NEED_CHARS, DROP, DROP_VALUE = range(7)  # of the state
STATE_WIDTH = 7

BAD_NUMBER, BAD_LENGTH, BAD_BRANCH, BAD_COUNT, BAD_NULL, BAD_RANGE, BAD_BOOLEAN, FULL = range(-1, -9, -1)
OF_NUMBER, OF_BYTES = -1, -2  # where NULL has no list with a child to name

_LARGEST = 0x7FFF_FFFF_FFFF_FFFF


def varint(data: Any, at: Any) -> Any:
    """Read a number in zigzag form; return it and the position after it."""
    if at >= len(data):
        return 0, BAD_NUMBER
    byte = data[at]
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        at += 1
        if at >= len(data) or shift > 63:
            return 0, BAD_NUMBER
        byte = data[at]
        if shift == 63 and byte > 1:  # more than 64 bits
            return 0, BAD_NUMBER
        value |= (byte & 0x7F) << shift
        shift += 7
    return ((value >> 1) & _LARGEST) ^ -(value & 1), at + 1


def sized(data: Any, at: Any) -> Any:
    """Read a length, checked against the bytes after it."""
    length, at = varint(data, at)
    if at >= 0 and (length < 0 or length > len(data) - at):
        return 0, BAD_LENGTH
    return length, at


def items(data: Any, at: Any) -> Any:
    """Read the number of items in the next block of an array or map, zero at its end.

    Every item takes a byte at least, as the compiler refuses others.
    """
    count, at = varint(data, at)
    if at < 0:
        return 0, at
    if count < 0:
        if count < -len(data):
            return 0, BAD_COUNT
        count = -count
        _size, at = sized(data, at)
        if at < 0:
            return 0, at
    if count > len(data) - at:
        return 0, BAD_COUNT
    return count, at


def copy(chars: Any, to: Any, data: Any, start: Any, length: Any) -> Any:
    """Copy bytes; numba has words in their place."""
    chars[to : to + length] = data[start : start + length]


def room(state: Any, columns: Any, row: Any, words: Any, length: Any) -> Any:
    """Whether a column has space for so many words and bytes; if not, the state has what it needs."""
    if (
        columns[row + COUNT] + words <= columns[row + ROOM]
        and columns[row + CHAR_COUNT] + length <= columns[row + CHAR_ROOM]
    ):
        return True
    state[NEED] = row
    state[NEED_WORDS] = columns[row + COUNT] + words
    state[NEED_CHARS] = columns[row + CHAR_COUNT] + length
    return False


def put(state: Any, words: Any, valid: Any, columns: Any, row: Any, value: Any, is_valid: Any) -> Any:
    """Append a word; whether there was room."""
    if not room(state, columns, row, 1, 0):
        return False
    where = columns[row + BASE] + columns[row + COUNT]
    words[where] = value
    valid[where] = is_valid
    columns[row + COUNT] += 1
    return True


def put_bytes(
    data: Any, at: Any, length: Any, state: Any, words: Any, valid: Any, chars: Any, columns: Any, row: Any
) -> Any:
    """Append bytes; return the position after them."""
    if not room(state, columns, row, 1, length):
        return FULL
    end = columns[row + CHAR_COUNT]
    copy(chars, columns[row + CHAR_BASE] + end, data, at, length)
    columns[row + CHAR_COUNT] = end + length
    put(state, words, valid, columns, row, end + length, 1)
    return at + length


def pairs_of_longs(
    data: Any, at: Any, key: Any, value: Any, bits: Any, state: Any, words: Any, columns: Any
) -> Any:
    """Append the entries of a map from numbers to numbers; return the position after it."""
    while True:
        count, at = items(data, at)
        if at < 0 or count == 0:
            return at
        if not (room(state, columns, key, count, 0) and room(state, columns, value, count, 0)):
            return FULL
        to_key = columns[key + BASE] + columns[key + COUNT]
        to_value = columns[value + BASE] + columns[value + COUNT]
        for i in range(count):
            number, at = varint(data, at)
            if at < 0:
                return at
            if number >> (bits - 1) != number >> 63:
                return BAD_RANGE
            words[to_key + i] = number
            number, at = varint(data, at)
            if at < 0:
                return at
            words[to_value + i] = number
        columns[key + COUNT] += count
        columns[value + COUNT] += count


def pairs_of_bytes(
    data: Any, at: Any, key: Any, value: Any, bits: Any, state: Any, words: Any, chars: Any, columns: Any
) -> Any:
    """Append the entries of a map from numbers to bytes; return the position after it."""
    while True:
        count, at = items(data, at)
        if at < 0 or count == 0:
            return at
        if not (room(state, columns, key, count, 0) and room(state, columns, value, count, 0)):
            return FULL
        to_key = columns[key + BASE] + columns[key + COUNT]
        to_value = columns[value + BASE] + columns[value + COUNT]
        for i in range(count):
            number, at = varint(data, at)
            if at < 0:
                return at
            if number >> (bits - 1) != number >> 63:
                return BAD_RANGE
            words[to_key + i] = number
            length, at = sized(data, at)
            if at < 0:
                return at
            if not room(state, columns, value, count, length):
                return FULL
            end = columns[value + CHAR_COUNT]
            copy(chars, columns[value + CHAR_BASE] + end, data, at, length)
            words[to_value + i] = columns[value + CHAR_COUNT] = end + length
            at += length
        columns[key + COUNT] += count
        columns[value + COUNT] += count


def skip(op: Any, size: Any, data: Any, at: Any) -> Any:
    """Return the position after a value that is not needed."""
    if op == SKIP_NUMBER:
        _value, at = varint(data, at)
        return at
    if op == SKIP_BYTES:
        size, at = sized(data, at)
        return at + size if at >= 0 else at
    return at + size if size <= len(data) - at else BAD_LENGTH


def take_number(
    op: Any, row: Any, a: Any, data: Any, at: Any, state: Any, words: Any, valid: Any, columns: Any
) -> Any:
    """Append a value of one word: a number, a truth value, the end of a list, a null."""
    value, is_valid = 0, 1
    if op == LONG:
        value, at = varint(data, at)
        if at >= 0 and value >> (a - 1) != value >> 63:
            at = BAD_RANGE
    elif op == BOOLEAN:
        if at >= len(data) or data[at] > 1:
            at = BAD_BOOLEAN
        else:
            value = data[at] & 1
            at += 1
    elif op == LIST:
        value = columns[a + COUNT]
    else:
        is_valid = 0
        if a == OF_BYTES:
            value = columns[row + CHAR_COUNT]
        elif a != OF_NUMBER:
            value = columns[a + COUNT]
    if at < 0:
        return at
    return at if put(state, words, valid, columns, row, value, is_valid) else FULL


def take_bytes(
    op: Any, row: Any, a: Any, data: Any, at: Any, registers: Any,
    state: Any, words: Any, valid: Any, chars: Any, columns: Any,
) -> Any:  # fmt: skip
    """Append bytes with a length, bytes of a fixed length, or all bytes since a mark."""
    if op == BYTES:
        length, at = sized(data, at)
        if at < 0:
            return at
    elif op == FIXED:
        length = a
        if length > len(data) - at:
            return BAD_LENGTH
    else:
        length = at - registers[a]
        at = registers[a]
    return put_bytes(data, at, length, state, words, valid, chars, columns, row)


def take(
    op: Any, row: Any, a: Any, b: Any, data: Any, at: Any, registers: Any,
    state: Any, words: Any, valid: Any, chars: Any, columns: Any,
) -> Any:  # fmt: skip
    """Append a value that is wanted; return the position after it."""
    if op == PAIRS_OF_LONGS:
        return pairs_of_longs(data, at, row, a, b, state, words, columns)
    if op == PAIRS_OF_BYTES:
        return pairs_of_bytes(data, at, row, a, b, state, words, chars, columns)
    if op in (BYTES, FIXED, RAW):
        return take_bytes(op, row, a, data, at, registers, state, words, valid, chars, columns)
    return take_number(op, row, a, data, at, state, words, valid, columns)


def record(
    program: Any, data: Any, at: Any, registers: Any,
    state: Any, words: Any, valid: Any, chars: Any, columns: Any,
) -> Any:  # fmt: skip
    """Decode one record; return the position after it."""
    pc = 0
    while at >= 0:
        op, a, b = program[pc], program[pc + 1], program[pc + 2]
        pc += OP_WIDTH
        if op >= LONG:
            at = take(op, a, b, program[pc - 1], data, at, registers, state, words, valid, chars, columns)
        elif op >= SKIP_NUMBER:
            at = skip(op, a, data, at)
        elif op == UNION:
            branch, at = varint(data, at)
            if at >= 0:
                if branch < 0 or branch >= a:
                    return BAD_BRANCH
                pc = program[b + branch]
        elif op == JUMP:
            pc = a
        elif op in (OPEN, NEXT):
            if op == OPEN or registers[a] == 1:
                registers[a], at = items(data, at)
            else:
                registers[a] -= 1
            if (op == OPEN) == (registers[a] == 0):  # nothing in it, or not yet at its end
                pc = b
        elif op == MARK:
            registers[a] = at
        elif op == REFUSE:
            return BAD_NULL
        else:
            return at
    return at


def run(
    program: Any, data: Any, registers: Any, state: Any,
    words: Any, valid: Any, chars: Any, columns: Any, saved: Any,
) -> Any:  # fmt: skip
    """Decode the records that are left of a block; return zero, or why it stopped before a record.

    A record that is dropped, or that a column has no room for, is not kept.
    """
    while state[LEFT] > 0:
        for i in range(len(columns)):
            saved[i] = columns[i]
        at = record(program, data, state[AT], registers, state, words, valid, chars, columns)
        dropped = False
        if at >= 0 and state[DROP] >= 0:
            row = state[DROP]
            last = columns[row + BASE] + columns[row + COUNT] - 1
            dropped = words[last] == state[DROP_VALUE]
        if at < 0 or dropped:
            for i in range(len(columns)):
                columns[i] = saved[i]
        if at < 0:
            return at
        state[AT] = at
        state[LEFT] -= 1
    return 0
