"""PyTorch's side of `clattn bench attention --torch`: attention by one implementation at a time, when it is told to.

SPDX-License-Identifier: Apache-2.0

Commands come on standard input, a line each; every one is answered by a line, "ok ..." or "no " and the reason:

    device NAME                                      the GPU of this name, or the only one
    load DTYPE BATCH HQ HKV LQ LKV D DV CAUSAL       then q, k and v as they lie in memory, packed (batch, heads, len, dim)
    plan N BACKEND                                   attention on what was loaded last, run once
    run N                                            ok WALL EVENT, in milliseconds
    fetch N                                          ok BYTES, then the output as it lies in memory
    drop N
"""
import ctypes
import os
import sys
import time

answers = os.fdopen(os.dup(1), "wb") # nothing else may be written there
os.dup2(2, 1)
commands = sys.stdin.buffer


class Attention:
    """Inputs on the GPU."""

    def __init__(self, torch, device, words):
        self.torch = torch
        self.dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}.get(words[0])
        batch, heads_q, heads_kv, len_q, len_kv, head_dim, value_dim, causal = map(int, words[1:])
        shapes = ((batch, heads_q, len_q, head_dim), (batch, heads_kv, len_kv, head_dim), (batch, heads_kv, len_kv, value_dim))
        size = 4 if words[0] == "f32" else 2
        buffers = [commands.read(shape[0] * shape[1] * shape[2] * shape[3] * size) for shape in shapes]
        if self.dtype is None:
            raise ValueError("no type is called " + words[0])
        self.tensors = [torch.frombuffer(bytearray(buffer), dtype=self.dtype).reshape(shape).to(device)
                        for buffer, shape in zip(buffers, shapes)]
        self.options = {"is_causal": bool(causal)}
        if heads_q != heads_kv:
            self.options["enable_gqa"] = True

    def compute(self, backend):
        with self.torch.inference_mode(), self.torch.nn.attention.sdpa_kernel([backend]):
            return self.torch.nn.functional.scaled_dot_product_attention(*self.tensors, **self.options)


class Plan:
    """Inputs and the one implementation that may take them."""

    def __init__(self, torch, inputs, name):
        if inputs is None:
            raise ValueError("nothing is loaded")
        backends = torch.nn.attention.SDPBackend
        self.backend = getattr(backends, {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION",
                                          "math": "MATH"}[name])
        self.torch, self.inputs = torch, inputs
        self.out = None
        self.run()

    def run(self):
        """Wall clock and the GPU's, in milliseconds."""
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda.synchronize()
        start = time.perf_counter()
        first.record()
        self.out = self.inputs.compute(self.backend)
        last.record()
        self.torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start), first.elapsed_time(last)

    def bytes(self):
        host = self.out.contiguous().cpu()
        return ctypes.string_at(host.data_ptr(), host.numel() * host.element_size())


class Worker:
    def __init__(self):
        import torch # pylint: disable=import-outside-toplevel # what is missing is an answer
        import torch.nn.attention # pylint: disable=import-outside-toplevel
        torch.backends.cuda.matmul.allow_tf32 = False # f32 is f32
        self.torch, self.plans = torch, {}
        self.gpu = self.loaded = None

    def device(self, *name):
        if not self.torch.cuda.is_available():
            raise RuntimeError("torch %s sees no GPU" % self.torch.__version__)
        name, count = " ".join(name), self.torch.cuda.device_count()
        names = [self.torch.cuda.get_device_name(n) for n in range(count)]
        if name not in names and count != 1:
            raise RuntimeError("torch calls no GPU %s; it has %s" % (name, ", ".join(names)))
        index = names.index(name) if name in names else 0
        self.torch.cuda.set_device(index)
        self.gpu = "cuda:%d" % index
        return "PyTorch %s on %s" % (self.torch.__version__, names[index])

    def load(self, *words):
        self.loaded = None # the memory of the last one is free for this one
        self.loaded = Attention(self.torch, self.gpu, words)

    def plan(self, number, backend):
        self.plans[number] = Plan(self.torch, self.loaded, backend)

    def run(self, number):
        return "%.9g %.9g" % self.plans[number].run()

    def fetch(self, number):
        return self.plans[number].bytes()

    def drop(self, number):
        self.plans.pop(number, None)


def one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def serve():
    worker = None
    for line in commands:
        words = line.decode().split()
        try:
            worker = worker or Worker()
            found = getattr(worker, words[0])(*words[1:])
        except Exception as error: # pylint: disable=broad-except # whatever it is, the other side is told
            answers.write(b"no %s\n" % one_line(error).encode())
        else:
            raw = found if isinstance(found, bytes) else None
            answers.write(b"ok %s\n" % (b"%d" % len(raw) if raw is not None else (found or "").encode()) + (raw or b""))
        answers.flush()


serve()
