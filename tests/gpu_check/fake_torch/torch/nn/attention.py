"""SPDX-License-Identifier: Apache-2.0"""
import contextlib
import types

SDPBackend = types.SimpleNamespace(FLASH_ATTENTION="flash", CUDNN_ATTENTION="cudnn", EFFICIENT_ATTENTION="efficient", MATH="math")
FORCED = []


@contextlib.contextmanager
def sdpa_kernel(backends):
    FORCED[:] = backends
    yield
    FORCED.clear()
