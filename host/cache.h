/* Small files that are kept from one process to the next: what was found out about a device and costs time to find out again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They lie in $CLATTN_CACHE_DIR, else in $XDG_CACHE_HOME/clattn, else in $HOME/.cache/clattn; without any of these nothing is
 * kept. A cache is never needed: what cannot be read is not there, what cannot be written is made again. A file is replaced as
 * a whole, so that processes which read and write it at once see one version or another.
 */
#ifndef CLATTN_CACHE_H
#define CLATTN_CACHE_H

#include "internal.h"

/* The file of that name, for the caller to free; NULL where there is none, or one of more than `most` bytes. */
char *clattn__cache_read(const char *name, size_t most);
/* Replace it; false where that is not possible. */
bool clattn__cache_write(const char *name, const char *text);

#endif
