"""Pickles of strangers: plain ones are read as the library reads them; nothing in a crafted one runs, changes or crashes anything."""

from __future__ import annotations

import collections
import contextlib
import functools
import pickle
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cglsuite.base.pickles import ARRAYS, Stated, as_array, read_pickle

REFUSED = (pickle.UnpicklingError, EOFError, ValueError, LookupError, TypeError)
DTYPE = b"cnumpy\ndtype\n"


def array(dtype_state: bytes, shape: bytes = b"K\x01\x85", content: bytes = b"C\x08" + b"\0" * 8, name: bytes = b"X\x02\0\0\0f8") -> bytes:
    """A pickle of an array whose dtype has been given a state."""
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\0tC\x01btR"
    dtype = DTYPE + b"(" + name + b"K\0K\x01tR" + dtype_state
    return b"\x80\x03" + made + b"(K\x01" + shape + dtype + b"\x89" + content + b"tb."


PLAIN = b"(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
FIELDS = b"(K\x03X\x01\0\0\0|N(X\x01\0\0\0at}X\x01\0\0\0aK\x07sJ\xff\xff\xff\x7fK\x01K\x10tb"
SUBARRAY = b"(K\x03X\x01\0\0\0|(K\x01K\x02tNNJ\xff\xff\xff\x7fK\x01K\0tb"
METADATA = b"(K\x04X\x01\0\0\0|NNNJ\xff\xff\xff\x7fJ\xff\xff\xff\x7fK?}X\x01\0\0\0aK\x01stb"
OBJECTS = b"X\x02\0\0\0O8"
ATTACKS = {
    "fields": array(FIELDS),
    "sub-array": array(SUBARRAY),
    "metadata": array(METADATA),
    "object dtype": array(PLAIN, name=OBJECTS, content=b"]"),
    "object bytes": array(b"", name=OBJECTS),
    "void dtype": array(b"", name=b"X\x03\0\0\0V16"),
    "date dtype": array(b"", name=b"X\x02\0\0\0M8"),
    "text dtype": array(b"", name=b"X\x02\0\0\0U2"),
    "structured text": array(b"", name=b"X\x05\0\0\0f8,f8"),
    "shape beyond bytes": array(PLAIN, shape=b"J\xff\xff\xff\x7f\x85"),
    "negative shape": array(PLAIN, shape=b"J\xff\xff\xff\xff\x85"),
    "shape of text": array(PLAIN, shape=b"X\x01\0\0\0a\x85"),
    "many axes": array(PLAIN, shape=b"(" + b"K\x01" * 99 + b"t"),
    "dtype of the state": array(b"0K\x01"),
    "attributes of a class": b"\x80\x02cnumpy\nndarray\nN}X\x01\0\0\0aK\x01s\x86b.",
    "attributes of a dtype": b"\x80\x02" + DTYPE + b"N}X\x04\0\0\0nameK\x01s\x86b.",
    "attributes of a maker": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n}X\x08\0\0\0__code__Nsb.",
    "state of a list": b"\x80\x02]}b.",
    "state of a mapping": b"\x80\x02}}b.",
    "state of a number": b"\x80\x02K\x01N}X\x04\0\0\0realK\x01s\x86b.",
    "call of a number": b"\x80\x02K\x01)R.",
    "call of a list": b"\x80\x02])R.",
    "call of text": b"\x80\x02X\x01\0\0\0a)R.",
    "call without a tuple": b"\x80\x02cnumpy\ndtype\n]R.",
    "call with too much": b"\x80\x02cnumpy\ndtype\n(K\x01K\x01K\x01K\x01K\x01tR.",
    "another name": b"\x80\x02cos\nsystem\n(X\x04\0\0\0truetR.",
    "builtins": b"\x80\x02cbuiltins\neval\n(X\x01\0\0\x001tR.",
    "a name below": b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
    "INST": b"(ios\nsystem\n.",
    "OBJ": b"(cos\nsystem\no.",
    "persistent id": b"Pabc\n.",
    "binary persistent id": b"K\x01Q.",
    "extension": b"\x82\x01.",
    "buffer": b"\x80\x05\x97.",
    "set": b"\x80\x04\x8f.",
    "byte array": b"\x80\x05\x96" + struct.pack("<Q", 8) + b"a" * 8 + b".",
    "keys of tuples": b"}" + b")" + b"\x85" * 200_000 + b"K\x01s.",
    "keys of lists": b"}]K\x01s.",
    "NaN of a mapping's size": b"}(K\x01u.",
    "items of a list": b"]K\x01K\x01s.",
    "append to a mapping": b"}K\x01a.",
    "append to a name": b"cnumpy\ndtype\nK\x01a.",
    "unknown memo": b"h\x07.",
    "endless text": b"X\xff\xff\xff\x7fa.",
    "endless bytes": b"\x8e" + struct.pack("<Q", 2**62) + b"a.",
    "long number": b"I" + b"9" * 9999 + b"\n.",
    "empty": b"",
    "no stop": b"]",
    "stop alone": b".",
    "later protocol": b"\x80\x63.",
    "another encoding": b"c_codecs\nencode\n(X\x01\0\0\0aX\x05\0\0\0utf-7tR.",
}


def test_a_hand_made_array_is_read() -> None:
    """The attacks differ from this by what they say of themselves alone."""
    assert as_array(read_pickle(array(PLAIN), ARRAYS)).tolist() == [0.0]
    assert as_array(read_pickle(array(b""), ARRAYS)).dtype == np.float64


@pytest.mark.parametrize("attack", ATTACKS)
def test_crafted_pickles_are_refused(attack: str) -> None:
    before = dict(vars(np.ndarray)), np.dtype("f8").name
    with pytest.raises(REFUSED):
        as_array(read_pickle(ATTACKS[attack], ARRAYS))
    assert (dict(vars(np.ndarray)), np.dtype("f8").name) == before


LATIN = b"X\x01\0\0\0aX\x06\0\0\0latin1"
SAID = {
    "call of a number": (b"\x80\x02K\x01)R.", "it calls an object that is not allowed"),
    "call of an object that names make": (b"\x80\x02" + DTYPE + b"X\x02\0\0\0f8\x85R)R.", "it calls an object that is not allowed"),
    "call of a name with a list": (b"\x80\x02c_codecs\nencode\n](" + LATIN + b"eR.", "it calls an object that is not allowed"),
    "append to a mapping": (b"}K\x01a.", "it appends to dict"),
    "append to an array": (array(PLAIN)[:-1] + b"K\x01a.", "it appends to _Array"),
    "item of a list": (b"]K\x00K\x01s.", "it sets items of list"),
    "odd items": (b"}(K\x01K\x02K\x03u.", "it sets items of dict"),
    "key of a tuple": (b"})K\x01s.", "a mapping has a key of type tuple"),
    "dtype of two bytes too many": (b"\x80\x02" + DTYPE + b"X\x03\0\0\0f16\x85R.", "an array has dtype 'f16'"),
    "aligned dtype": (b"\x80\x02" + DTYPE + b"X\x02\0\0\0f8K\x01\x86R.", "an array has dtype 'f8'"),
    "encoding": (b"c_codecs\nencode\n(X\x01\0\0\0aX\x05\0\0\0utf-7tR.", "it encodes something other than bytes"),
    "state without a state": (b"\x80\x02]}b.", "it sets the state of an object of type list"),
    "instruction": (b"(ios\nsystem\n.", "it has the instruction 105"),
}


@pytest.mark.parametrize("fault", SAID)
def test_each_rule_refuses_by_itself(fault: str) -> None:
    """What breaks one rule is refused for it, not for what happens to follow, and whatever the caller does with the result."""
    content, said = SAID[fault]
    with pytest.raises(pickle.UnpicklingError, match=said):
        read_pickle(content, ARRAYS)


def test_text_of_old_files_is_bytes() -> None:
    assert read_pickle(b"\x80\x02c_codecs\nencode\n(" + LATIN + b"tR.", ARRAYS) == b"a"


def test_no_attack_ends_the_interpreter() -> None:
    """All of them again in one process: what would crash it is told by its exit status."""
    script = "import pickle, sys; from cglsuite.base.pickles import ARRAYS, as_array, read_pickle\nattacks = eval(sys.stdin.read())\n"
    script += "for name, content in attacks.items():\n    try:\n        as_array(read_pickle(content, ARRAYS))\n"
    script += "    except Exception as error: print(name, type(error).__name__)\n    else: sys.exit(name)\n"
    done = subprocess.run([sys.executable, "-c", script], input=repr(ATTACKS), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(ATTACKS)


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f4", "i8", "i4", "u1", "?", "<u2"])
def test_arrays_are_read_as_they_were_written(protocol: int, dtype: str) -> None:
    for value in (np.arange(6).reshape(2, 3), np.zeros((0, 3)), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(3)):
        given_array = value.astype(dtype, order="K")
        found = as_array(read_pickle(pickle.dumps(given_array, protocol=protocol), ARRAYS))
        assert found.dtype == given_array.dtype
        np.testing.assert_array_equal(found, given_array)


TEXT = st.text(st.characters(max_codepoint=127))
PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(st.integers() | TEXT, inner) | st.tuples(inner, inner),
)


@settings(max_examples=60, deadline=None)
@given(PLAIN_VALUES, st.integers(0, 4))
def test_containers_are_read_as_the_library_reads_them(value: Any, protocol: int) -> None:
    assert read_pickle(pickle.dumps(value, protocol=protocol), {}) == value


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 255))
def test_random_and_damaged_bytes_end_in_one_of_four_errors(noise: bytes, place: int, byte: int) -> None:
    good = pickle.dumps({"a": np.arange(5), 3: [1.5, "x"]}, protocol=2)
    for content in (noise, good[: place % len(good)] + noise, good[: place % len(good)] + bytes([byte]) + good[place % len(good) + 1 :]):
        with contextlib.suppress(REFUSED):
            read_pickle(content, ARRAYS)


def test_states_are_set_on_what_takes_them_alone() -> None:
    class Point(Stated):
        def set_state(self, state: Any) -> None:
            self.state = state

    content = pickle.dumps(collections.OrderedDict(a=1), protocol=2)
    assert read_pickle(content, {("collections", "OrderedDict"): lambda *_: {}}) == {"a": 1}
    found = read_pickle(b"\x80\x02cm\nPoint\n)\x81}X\x01\0\0\0xK\x05sb.", {("m", "Point"): Point})
    assert found.state == {"x": 5}
    with pytest.raises(pickle.UnpicklingError, match="it sets the state of an object of type partial"):
        read_pickle(b"\x80\x02cm\np\n)\x81}X\x01\0\0\0xK\x05sb.", {("m", "p"): lambda: functools.partial(print)})
