/* The program: one table of commands, from which it dispatches and makes its help.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "lessons/lessons.h"

static int help_main(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"attend", attend_main, "attention on NumPy files"},
    {"merge", merge_main, "attention over all keys from attention over parts of them"},
    {"mha", mha_main, "the whole attention layer on NumPy files"},
    {"project", project_main, "its queries, keys and values alone"},
    {"rnn", rnn_main, "the recurrence on NumPy files"},
    {"lstm", lstm_main, "the LSTM on NumPy files"},
    {"devices", devices_main, "every device that can compute, and which one is picked"},
    {"cache", cache_main, "compiled kernels that are kept on disk"},
    {"bench", clattn_bench_main, "attention beside the recurrence, measured here"},
    {"tune", tune_main, "measures the kernels of a device, so that the fastest serve"},
    {"lesson", clattn_lesson_main, "the course: from the recurrence to attention, computed here"},
    {"race", race_main, "attention and the recurrence side by side, for a class"},
    {"lab", lab_main, "a kernel of yours, checked and timed beside the library's"},
    {"help", help_main, "this list, or how a command is used"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static int print_help(void) {
    printf("usage: clattn COMMAND [option ...]\n\nAttention on any OpenCL device, and on any CPU without one.\n\n");
    for (size_t i = 0; i < COMMANDS; i++) printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\n  clattn COMMAND --help   how a command is used\n  clattn --version        %s\n", clattn_version());
    return CLI_SUCCESS;
}

static int dispatch(int argc, char **argv) {
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[0], commands[i].name) == 0) return commands[i].run(argc, argv);
        names[i] = commands[i].name;
    }
    const char *nearest = cli_nearest(argv[0], names, COMMANDS);
    if (nearest != NULL) return cli_fail(argv[0], CLI_USAGE, "there is no such command; did you mean %s?", nearest);
    return cli_fail(argv[0], CLI_USAGE, "there is no such command; clattn help lists them");
}

static int help_main(int argc, char **argv) {
    char help[] = "--help";
    if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0) return print_help();
    if (argc > 2) return cli_fail("help", CLI_USAGE, "wants one command, not %d", argc - 1);
    char *arguments[] = {argv[1], help, NULL};
    return dispatch(2, arguments);
}

static int run(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return print_help();
    if (strcmp(argv[1], "--version") == 0) {
        printf("clattn %s\n", clattn_version());
        return CLI_SUCCESS;
    }
    return dispatch(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is then a write error, after which temporaries are removed */
#endif
#ifdef SIGPIPE
    signal(SIGPIPE, SIG_IGN); /* likewise a reader that went away */
#endif
    int exit_code = run(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && exit_code == CLI_SUCCESS)
        exit_code = cli_fail(argc > 1 ? argv[1] : "help", CLI_FAILURE, "cannot write to standard output");
    return exit_code;
}
