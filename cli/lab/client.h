/* The parent's side of a worker: start it, ask it, and end it when it does not answer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_CLI_LAB_CLIENT_H
#define CLATTN_CLI_LAB_CLIENT_H

#include <sys/types.h>

#include "protocol.h"

typedef enum lab_kind_of_worker {
    LAB_STUDENT,
    LAB_SIMULATED /* a student's, on oclgrind */,
    LAB_OURS_WORKER
} lab_kind_of_worker;

typedef struct lab_client {
    pid_t pid; /* 0: none */
    int to, from, memory_fd;
    char *memory;      /* LAB_MEMORY_BYTES, shared; the same for all that the worker does */
    char printed[272]; /* the file in which a student's kernel's printf ends */
    char scratch[256]; /* the folder in which it may write; "": none */
    int end;           /* its wait status once it has ended */
} lab_client;

typedef enum lab_answer { LAB_ANSWERED, LAB_TIMED_OUT, LAB_DIED, LAB_STOPPED } lab_answer;

/* On failure `why` holds a sentence, and there is nothing to stop. */
bool lab_client_start(lab_client *, lab_kind_of_worker, char *why, size_t why_size);
/* Send the request and wait so long for the reply. After anything but LAB_ANSWERED the worker is gone: it timed out and was
 * ended, it died (`end` says how, and the reply may be a LAB_CRASH), or the user wants to stop. */
lab_answer lab_client_ask(lab_client *, const lab_request *, lab_reply *, double seconds);
/* End it, free the memory, remove the folder. A zeroed client is accepted. */
void lab_client_stop(lab_client *);

/* Where oclgrind's driver lies; NULL: not installed. */
const char *lab_oclgrind(void);

/* From now on SIGINT and SIGTERM set a flag, so that workers and folders are cleaned up. */
void lab_catch_signals(void);
bool lab_is_stopped(void);

#endif
