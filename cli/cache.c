/* clattn cache: what is kept on disk for the next start, and its removal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "host/cache.h"

typedef struct cache_options {
    bool clear;
    const char *json;
} cache_options;

static const cli_option options_table[] = {
    {"clear", NULL, "remove what is kept", CLI_FLAG, offsetof(cache_options, clear)},
    {"json", "FILE|-", "the same as JSON", CLI_TEXT, offsetof(cache_options, json)},
    {NULL},
};

static const cli_command command = {
    .name = "cache",
    .summary = "Compiled OpenCL kernels, kept on disk for the next start: where, how many.",
    .options = options_table,
    .details =
        "They are kept in $CLATTN_CACHE_DIR, else $XDG_CACHE_HOME/clattn, else $HOME/.cache/clattn, and not at all where "
        "CLATTN_CACHE_DIR is empty. CLATTN_KERNEL_CACHE=0 leaves compiled kernels out.",
};

static const struct {
    const char *text, *json;
} kinds[CLATTN__CACHE_KINDS] = {
    [CLATTN__CACHE_KERNEL] = {"compiled kernels", "kernels"},
    [CLATTN__CACHE_SELF_CHECK] = {"lists of kernels that computed right", "self_checks"},
};

typedef struct contents {
    clattn__file_cache cache;
    clattn__cache_total totals[CLATTN__CACHE_KINDS];
    const char *obstacle; /* why nothing more is kept, or NULL */
} contents;

static int gather(contents *c) {
    const int obstacle = clattn__cache_obstacle(&c->cache), failure = clattn__cache_count(&c->cache, c->totals);
    c->obstacle = !c->cache.directory ? c->cache.why_not : obstacle ? strerror(obstacle) : NULL;
    /* What lies in no directory that can be read is nothing, and the obstacle says it. */
    if (failure && !obstacle) return cli_fail(command.name, CLI_FAILURE, "%s: %s", c->cache.directory, strerror(failure));
    return CLI_SUCCESS;
}

static void print_contents(const contents *c) {
    if (c->cache.directory) printf("%s\n", c->cache.directory);
    for (int kind = 0; c->cache.directory && kind < CLATTN__CACHE_KINDS; kind++)
        printf("%6zu %-38s %12zu bytes\n", c->totals[kind].files, kinds[kind].text, c->totals[kind].bytes);
    if (c->obstacle) printf("nothing %sis kept: %s\n", c->cache.directory ? "more " : "", c->obstacle);
    if (!c->cache.kernels) printf("compiled kernels are not kept: $CLATTN_KERNEL_CACHE is 0\n");
}

#ifdef CLATTN_HAVE_CJSON
static int write_json(const contents *c, const char *path) {
    output_set outputs = {0};
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "clattn-cache-1");
    cJSON_AddStringToObject(root, "version", clattn_version());
    cJSON_AddStringToObject(root, "directory", c->cache.directory ? c->cache.directory : "");
    cJSON_AddStringToObject(root, "obstacle", c->obstacle ? c->obstacle : "");
    cJSON_AddBoolToObject(root, "keeps_kernels", c->cache.kernels);
    cJSON_AddNumberToObject(root, "most_bytes", (double)c->cache.most_bytes);
    for (int kind = 0; kind < CLATTN__CACHE_KINDS; kind++) {
        cJSON *total = cJSON_AddObjectToObject(root, kinds[kind].json);
        cJSON_AddNumberToObject(total, "files", (double)c->totals[kind].files);
        cJSON_AddNumberToObject(total, "bytes", (double)c->totals[kind].bytes);
    }
    if (!json_write(&outputs, path, root)) return cli_fail(command.name, CLI_USAGE, "--json: %s", outputs.error);
    return output_commit(&outputs) ? CLI_SUCCESS : cli_fail(command.name, CLI_FAILURE, "%s", outputs.error);
}
#endif

static int show(const contents *c, const char *json) {
#ifdef CLATTN_HAVE_CJSON
    if (json != NULL) {
        int exit_code = write_json(c, json);
        if (exit_code != CLI_SUCCESS || strcmp(json, "-") == 0) return exit_code;
    }
#else
    (void)json;
#endif
    print_contents(c);
    return CLI_SUCCESS;
}

static int clear(const clattn__file_cache *cache) {
    const int failure = clattn__cache_clear(cache);
    return failure == 0 ? CLI_SUCCESS
                        : cli_fail(command.name, CLI_FAILURE, "--clear: %s: %s", cache->directory, strerror(failure));
}

int cache_main(int argc, char **argv) {
    cache_options options = {0};
    contents c = {0};
    int exit_code;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    if (options.json != NULL && json_missing() != NULL) return cli_fail(command.name, CLI_USAGE, "--json: %s", json_missing());
    if (!clattn__cache_open(&c.cache, NULL)) return cli_fail(command.name, CLI_FAILURE, "out of memory");
    exit_code = options.clear ? clear(&c.cache) : CLI_SUCCESS;
    if (exit_code == CLI_SUCCESS) exit_code = gather(&c);
    if (exit_code == CLI_SUCCESS) exit_code = show(&c, options.json);
    clattn__cache_close(&c.cache);
    return exit_code;
}
