"""SPDX-License-Identifier: Apache-2.0"""
from . import attention, functional # noqa: F401
