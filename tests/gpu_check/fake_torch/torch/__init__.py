"""As much of torch as bench/peer_torch.py uses, slow and in Python, on a GPU that is not there.

SPDX-License-Identifier: Apache-2.0

FAKE_TORCH is what goes wrong: "no gpu", "wrong" (flash computes something else), "hang" or "crash" (in the first run of flash),
"crash later" (in the third of length 32), "end later" (there it asks the program to end), "another gpu" (there are two, of other
names). cudnn never takes the type f32, as in truth.
"""
import array
import contextlib
import math
import os
import struct
import time
import types

__version__ = "0.fake"
MODE = os.environ.get("FAKE_TORCH", "")
float16, bfloat16, float32 = "f16", "bf16", "f32"


def bfloat16_of(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def decode(buffer, dtype):
    if dtype == bfloat16:
        words = struct.unpack("<%dI" % (len(buffer) // 2), b"".join(b"\0\0" + buffer[n:n + 2] for n in range(0, len(buffer), 2)))
        return list(struct.unpack("<%df" % len(words), struct.pack("<%dI" % len(words), *words)))
    size, letter = (2, "e") if dtype == float16 else (4, "f")
    return list(struct.unpack("<%d%s" % (len(buffer) // size, letter), buffer))


def encode(values, dtype):
    if dtype == bfloat16:
        return struct.pack("<%dH" % len(values), *map(bfloat16_of, values))
    return struct.pack("<%d%s" % (len(values), "e" if dtype == float16 else "f"), *values)


class Tensor:
    def __init__(self, values, dtype, shape=None):
        self.values, self.dtype, self.shape = values, dtype, shape
        self.memory = None

    def reshape(self, shape):
        return Tensor(self.values, self.dtype, shape)

    def to(self, device):
        assert device == "cuda:0"
        return self

    def contiguous(self):
        return self

    cpu = contiguous

    def numel(self):
        return len(self.values)

    def element_size(self):
        return 4 if self.dtype == float32 else 2

    def data_ptr(self):
        self.memory = array.array("B", encode(self.values, self.dtype))
        return self.memory.buffer_info()[0]

    def row(self, b, h, i):
        _, heads, length, dim = self.shape
        start = ((b * heads + h) * length + i) * dim
        return self.values[start:start + dim]


def frombuffer(buffer, dtype):
    return Tensor(decode(buffer, dtype), dtype)


inference_mode = contextlib.nullcontext


class Event:
    def __init__(self, enable_timing):
        assert enable_timing
        self.at = None

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


NAMES = ["Fake A", "Fake B"] if MODE == "another gpu" else ["Fake"]
cuda = types.SimpleNamespace(Event=Event, synchronize=lambda: None, is_available=lambda: MODE != "no gpu", set_device=lambda index: None,
                             device_count=lambda: len(NAMES), get_device_name=NAMES.__getitem__)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True)))


def attend(q, k, v, is_causal):
    batch, heads, len_q, head_dim = q.shape
    group, len_kv = heads // k.shape[1], k.shape[2]
    out = []
    for b in range(batch):
        for h in range(heads):
            keys = [k.row(b, h // group, j) for j in range(len_kv)]
            columns = list(zip(*(v.row(b, h // group, j) for j in range(len_kv))))
            for i in range(len_q):
                query = q.row(b, h, i)
                live = i + 1 if is_causal else len_kv
                scores = [sum(map(float.__mul__, query, key)) / math.sqrt(head_dim) for key in keys[:live]]
                largest = max(scores)
                weights = [math.exp(score - largest) for score in scores]
                total = sum(weights)
                out += [sum(map(float.__mul__, weights, column)) / total for column in columns]
    return Tensor(out, q.dtype, (batch, heads, len_q, v.shape[3]))
