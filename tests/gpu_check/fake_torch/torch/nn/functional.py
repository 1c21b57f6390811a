"""SPDX-License-Identifier: Apache-2.0"""
import os
import signal
import time

import torch

from .attention import FORCED

LATER = {"crash later": os.abort, "end later": lambda: os.kill(os.getppid(), signal.SIGTERM)}
runs = []
computed = {} # by the inputs: a run is slow enough once


def scaled_dot_product_attention(q, k, v, is_causal, enable_gqa=False):
    assert torch.backends.cuda.matmul.allow_tf32 is False and len(FORCED) == 1
    assert enable_gqa == (q.shape[1] != k.shape[1])
    if FORCED == ["cudnn"] and q.dtype == torch.float32:
        raise RuntimeError("No available kernel. Aborting execution.")
    if FORCED == ["flash"] and torch.MODE == "crash":
        os.abort()
    if FORCED == ["flash"] and torch.MODE == "hang":
        time.sleep(600)
    if FORCED == ["flash"] and torch.MODE in LATER and q.shape[2] == 32:
        runs.append(q)
        if len(runs) == 3: # of which the first two are those that prove it
            LATER[torch.MODE]()
    if FORCED == ["flash"] and torch.MODE == "wrong":
        return v.reshape((q.shape[0], q.shape[1], q.shape[2], v.shape[3]))
    if id(q) not in computed:
        computed[id(q)] = (torch.attend(q, k, v, is_causal), q)
    return computed[id(q)][0]
