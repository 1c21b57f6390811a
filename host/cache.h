/* Files that are kept from one process to the next: what costs time to find out or to compile again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They lie in the directory that clattn_context_options.cache_dir names, else in $CLATTN_CACHE_DIR, else in
 * $XDG_CACHE_HOME/clattn, else in $HOME/.cache/clattn; where the first of these that is set is empty, or none is, nothing is
 * kept. A cache is never needed: what cannot be read is not there, what cannot be written is made again.
 *
 * An entry is what belongs to a key, a line of text. Its file holds the key, the data and a checksum of both, and its name is a
 * hash of the key: an entry of another key, of another format, cut off or damaged is none. A file is replaced as a whole, so
 * that processes which read and write it at once see one version or another. Files that belong to another user, or that others
 * may write, are none of ours: what they hold is run. When all files together are too large, those that were not used for the
 * longest time go.
 */
#ifndef CLATTN_CACHE_H
#define CLATTN_CACHE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct clattn__file_cache {
    char *directory;     /* NULL: nothing is kept, */
    const char *why_not; /* for this reason */
    bool kernels;        /* whether kernels are kept, beside what is known of them */
    size_t most_bytes;   /* of all files together */
} clattn__file_cache;

typedef enum clattn__cache_kind { CLATTN__CACHE_KERNEL, CLATTN__CACHE_SELF_CHECK, CLATTN__CACHE_KINDS } clattn__cache_kind;

/* Make every directory on the way to a file, for this user alone, as XDG asks. 0, or an errno, and then the path ends at what could
 * not be made. */
int clattn__make_directories(char *path);

/* `directory` as clattn_context_options.cache_dir. False when there is no memory. */
bool clattn__cache_open(clattn__file_cache *, const char *directory);
void clattn__cache_close(clattn__file_cache *);
/* 0 where files can be kept; else the errno that says why not (ENOENT: there is no directory, see why_not). */
int clattn__cache_obstacle(const clattn__file_cache *);

/* The data of an entry, for the caller to free, and a 0 behind it; NULL where there is none. */
char *clattn__cache_read(const clattn__file_cache *, clattn__cache_kind, const char *key, size_t *length);
/* Replace an entry. 0, or the errno that says why it is not kept; also 0 where nothing is. */
int clattn__cache_write(const clattn__file_cache *, clattn__cache_kind, const char *key, const void *data, size_t length);

/* What a file's bytes hold for a key: a pointer into them, NULL where they are no whole entry of it. */
const char *clattn__cache_entry(const char *bytes, size_t size, const char *key, size_t *length);

typedef struct clattn__cache_total {
    size_t files, bytes;
} clattn__cache_total;

/* Count the files. 0 or an errno; a directory that is not there is empty. */
int clattn__cache_count(const clattn__file_cache *, clattn__cache_total totals[CLATTN__CACHE_KINDS]);
/* Remove them. 0 or the errno of the first that stays. */
int clattn__cache_clear(const clattn__file_cache *);

#endif
