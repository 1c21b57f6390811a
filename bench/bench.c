/* `clattn bench`: options in, files and tables out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "candidate.h"
#include "cli/json.h"
#include "compare.h"
#include "jobs.h"
#include "json.h"
#include "pin.h"
#include "report.h"
#include "sampler.h"
#include "table.h"

typedef bool job_function(bench_session *, bench_error *);

static bool run_all(bench_session *session, bench_error *error) {
    session->args.peers = true;
    return bench_job_project(session, error) && bench_job_recurrence(session, error) && bench_job_main(session, error);
}

static job_function *const jobs[] = {
    [BENCH_JOB_MAIN] = bench_job_main,       [BENCH_JOB_ATTENTION] = bench_job_attention,
    [BENCH_JOB_PROJECT] = bench_job_project, [BENCH_JOB_RECURRENCE] = bench_job_recurrence,
    [BENCH_JOB_LIMITS] = bench_job_limits,   [BENCH_JOB_ALL] = run_all,
};

static bool write_files(const bench_session *session, output_set *files) {
    const bench_args *args = &session->args;
    FILE *file;
    if (args->json && !bench_json_write(files, args->json, &session->records)) return false;
    if (args->csv) {
        if (!(file = output_open(files, args->csv))) return false;
        bench_print_csv(file, &session->records);
    }
    if (args->report) {
        if (!(file = output_open(files, args->report))) return false;
        bench_print_report(file, session);
    }
    return output_commit(files);
}

static int present(const bench_session *session) {
    output_set files = {0};
    if (session->records.count == 0)
        return cli_fail("bench", CLI_FAILURE, "nothing could be measured:\n%s",
                        session->remarks.data ? session->remarks.data : "");
    if (!write_files(session, &files)) return cli_fail("bench", CLI_FAILURE, "%s", files.error);
    if (!bench_args_owns_stdout(&session->args)) {
        if (session->args.markdown)
            bench_print_markdown(stdout, session);
        else
            bench_print_table(stdout, session);
    } else if (session->failed && session->remarks.data) {
        fputs(session->remarks.data, stderr);
    }
    if (fflush(stdout) != 0) return cli_fail("bench", CLI_FAILURE, "standard output does not take the table");
    return session->failed || session->records.failed ? CLI_FAILURE : CLI_SUCCESS;
}

/* A job that cannot go on has failed, but what it had measured is told. */
static void give_up(bench_session *session, const bench_error *error) {
    bench_session_remark(session, "GIVEN UP: %s", error->text);
    session->failed = true;
}

static int run(const bench_args *args) {
    bench_session session;
    bench_error error;
    int code;
    if (args->json && json_missing()) return cli_fail("bench", CLI_USAGE, "%s", json_missing());
    if (!bench_session_open(&session, args, &error))
        code = cli_fail("bench", CLI_USAGE, "%s", error.text);
    else {
        if (!jobs[args->job](&session, &error)) give_up(&session, &error);
        bench_session_progress(&session, "%s", "");
        code = present(&session);
    }
    bench_session_close(&session);
    return code;
}

int clattn_bench_main(int argc, char **argv) {
    bench_args args;
    int code = CLI_SUCCESS;
    if (argc > 1 && strcmp(argv[1], "compare") == 0) return bench_compare_main(argc - 1, argv + 1);
    if (!bench_args_read(&args, argc, argv, &code)) return code;
    bench_pin(argc, argv, args.peers ? bench_openblas_recognize : NULL);
    bench_end_on(SIGTERM);
    return run(&args);
}
