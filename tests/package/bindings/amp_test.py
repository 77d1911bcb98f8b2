# SPDX-License-Identifier: Apache-2.0
"""amp_test.py WEIGHTS RENAMED: tests amp.py, which `kiln compile --bindings python` wrote for a model with a state and a
batched entry."""

import array
import math
import sys

from amp import Error, Model


def tone(count):
    samples = array.array("f", (math.sin(0.05 * i) for i in range(count)))
    return memoryview(samples).cast("B").cast("f", [count, 1])


def flat(view):
    return [sample for row in view.tolist() for sample in row]


def refuses(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"no {kind.__name__}")


model = Model().bind(sys.argv[1])
whole = tone(256)
expected = flat(model.session().play(whole))
assert any(abs(sample) > 0.1 for sample in expected)

session = model.session()  # the state persists between calls
assert flat(session.play(whole[:100])) + flat(session.play(whole[100:])) == expected

renames = {"extra": None, "module.*": "*"}
assert flat(Model().bind(sys.argv[2], renames).session().play(whole)) == expected
refuses(Error, lambda: Model().bind(sys.argv[2], {"module.*": "*"}), '"extra"')
refuses(Error, lambda: Model().bind(sys.argv[1], renames), "rename 0", '"extra"')

threaded = Model(threads=2).bind(sys.argv[1])
assert flat(threaded.session().play(whole)) == expected

# Two sequences of 100 and 50 samples, then the rest of both.
call, first, second = model.session(), model.session(), model.session()
rows = memoryview(bytearray(150 * 4)).cast("f", [150, 1])
for i, sample in enumerate(flat(whole[:100]) + flat(whole[:50])):
    rows[i, 0] = sample
got = flat(call.play_batch([(first, (100,)), (second, (50,))], rows))
assert all(abs(a - b) < 1e-5 for a, b in zip(got, expected[:100] + expected[:50]))
after = flat(second.play(whole[50:]))
assert all(abs(a - b) < 1e-5 for a, b in zip(after, expected[50:]))

refuses(ValueError, lambda: session.play(memoryview(bytearray(24)).cast("f", [3, 2])), "clean: wrong shape", "(3, 1)")
refuses(TypeError, lambda: session.play(memoryview(bytearray(24)).cast("d", [3, 1])), "clean: wrong type", "f32")
refuses(ValueError, lambda: session.play(array.array("f", [0, 0])), "clean: wrong shape; expected 2 dimensions", "(2,)")


class Tensor:
    """As one of PyTorch: no buffer, but numpy() is."""

    def numpy(self):
        return whole


for wrong, words in (([1.0], "got list"), (None, "got NoneType"), (1.0, "got float"), (Tensor(), "its numpy() is one")):
    refuses(TypeError, lambda: session.play(wrong), "clean: wrong kind; expected a numpy array", words)
for threads in (0, -1, 2**32 + 1, 1.5, None):
    refuses(ValueError, lambda: Model(threads=threads), "threads: wrong number", repr(threads))
refuses(TypeError, lambda: call.play_batch([(first, ())], whole[:1]), "expected a Session and 1 extents, got Session and 0")
refuses(TypeError, lambda: call.play_batch([(model, (1,))], whole[:1]), "expected a Session and 1 extents, got Model")
refuses(ValueError, lambda: call.play_batch([(first, (2**64 + 1,))], whole[:1]), "sequences: wrong number")
refuses(ValueError, lambda: first.play_batch([(first, (1,))], whole[:1]),
        "the session of the call is one of them; expected others")
refuses(Error, lambda: session.play(tone(257)), "samples", "257")
refuses(Error, lambda: Model().session().play(whole))
refuses(Error, lambda: Model().bind("/nowhere.safetensors"), "/nowhere.safetensors")
session.close()
refuses(ValueError, lambda: session.play(whole), "closed")
assert flat(model.session().play(memoryview(bytes(whole)).cast("f", [256, 1]))) == expected  # read-only
print("python: all as expected")
