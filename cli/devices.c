/* clattn devices: what can compute here, and which of it `auto` picks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"

typedef struct devices_options {
    const char *json;
} devices_options;

static const cli_option options_table[] = {
    {"json", "FILE|-", "the same as JSON", CLI_TEXT, offsetof(devices_options, json)},
    {NULL},
};

static const cli_command command = {
    .name = "devices",
    .summary = "Every device that can compute here, and which one `auto` picks and why.",
    .options = options_table,
    .details = "The first column is what --device and $CLATTN_DEVICE take.",
};

typedef struct device_table {
    clattn_device_info *devices;
    size_t count;
    clattn_device_info picked; /* by auto */
    char *why;
} device_table;

static const char *kind_text(clattn_device_kind kind) {
    static const char *const texts[] = {
        [CLATTN_DEVICE_NATIVE] = "native CPU",         [CLATTN_DEVICE_REFERENCE] = "reference",
        [CLATTN_DEVICE_OPENCL_CPU] = "OpenCL CPU",     [CLATTN_DEVICE_OPENCL_GPU] = "OpenCL GPU",
        [CLATTN_DEVICE_OPENCL_OTHER] = "OpenCL other",
    };
    size_t index = (size_t)kind;
    return index < sizeof texts / sizeof *texts && texts[index] != NULL ? texts[index] : "unknown";
}

/* ---- gather ------------------------------------------------------------------------------------------------------ */

static int gather_pick(device_table *table) {
    char error[1024] = "";
    clattn_context *context = NULL;
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.device = "auto";
    options.error = error;
    options.error_size = sizeof error;
    clattn_status status = clattn_context_create(&options, &context);
    if (status != CLATTN_OK) return cli_fail_status(command.name, status, error);
    table->picked.struct_size = sizeof table->picked;
    clattn_context_device(context, &table->picked);
    size_t size = clattn_context_explain(context, NULL, 0) + 1;
    table->why = malloc(size);
    if (table->why != NULL) clattn_context_explain(context, table->why, size);
    clattn_context_destroy(context);
    return table->why != NULL ? CLI_SUCCESS : cli_fail(command.name, CLI_FAILURE, "out of memory");
}

static int gather(device_table *table) {
    size_t capacity = 0;
    clattn_status status = clattn_device_list(NULL, 0, &capacity);
    if (status == CLATTN_OK) {
        table->devices = calloc(capacity > 0 ? capacity : 1, sizeof *table->devices);
        if (table->devices == NULL) return cli_fail(command.name, CLI_FAILURE, "out of memory");
        if (capacity > 0) table->devices->struct_size = sizeof *table->devices;
        status = clattn_device_list(table->devices, capacity, &table->count);
    }
    if (status != CLATTN_OK) return cli_fail_status(command.name, status, NULL);
    if (table->count > capacity) table->count = capacity; /* one was plugged in meanwhile */
    return gather_pick(table);
}

/* ---- show -------------------------------------------------------------------------------------------------------- */

/* A number the device may not report, right-aligned. */
static void print_number(uint64_t value, int width) {
    if (value > 0)
        printf("  %*llu", width, (unsigned long long)value);
    else
        printf("  %*s", width, "-");
}

static void print_detail(const char *label, const char *text) {
    if (*text != '\0') printf("%15s%s%s\n", "", label, text);
}

static void print_device(const clattn_device_info *device, bool picked) {
    printf("%c %-11s  %-12s", picked ? '*' : ' ', device->id, kind_text(device->kind));
    print_number(device->compute_units, 5);
    print_number(device->clock_mhz, 5);
    print_number(device->local_bytes >> 10, 9);
    print_number(device->global_bytes >> 20, 10);
    print_number(device->vector_width, 5);
    printf("  %s\n", device->name);
    print_detail("platform: ", device->platform);
    print_detail("driver: ", device->driver);
    print_detail("features: ", device->features);
    print_detail("cannot be used: ", device->problem);
}

static void print_table(const device_table *table) {
    const char *preset = getenv("CLATTN_DEVICE");
    printf("  %-11s  %-12s  %5s  %5s  %9s  %10s  %5s  %s\n", "device", "kind", "units", "MHz", "local KiB", "memory MiB",
           "lanes", "name");
    for (size_t i = 0; i < table->count; i++)
        print_device(&table->devices[i], strcmp(table->devices[i].id, table->picked.id) == 0);
    printf("\n* auto picks %s\n%s", table->picked.id, table->why);
    if (preset != NULL && *preset != '\0') printf("CLATTN_DEVICE is set: commands without --device use %s.\n", preset);
}

#ifdef CLATTN_HAVE_CJSON
static cJSON *device_json(const clattn_device_info *device) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "id", device->id);
    cJSON_AddStringToObject(object, "kind", kind_text(device->kind));
    cJSON_AddStringToObject(object, "name", device->name);
    cJSON_AddStringToObject(object, "platform", device->platform);
    cJSON_AddStringToObject(object, "driver", device->driver);
    cJSON_AddStringToObject(object, "features", device->features);
    cJSON_AddNumberToObject(object, "compute_units", (double)device->compute_units);
    cJSON_AddNumberToObject(object, "clock_mhz", (double)device->clock_mhz);
    cJSON_AddNumberToObject(object, "local_bytes", (double)device->local_bytes);
    cJSON_AddNumberToObject(object, "global_bytes", (double)device->global_bytes);
    cJSON_AddNumberToObject(object, "max_alloc_bytes", (double)device->max_alloc_bytes);
    cJSON_AddNumberToObject(object, "max_work_group", (double)device->max_work_group);
    cJSON_AddNumberToObject(object, "vector_width", (double)device->vector_width);
    cJSON_AddStringToObject(object, "problem", device->problem);
    return object;
}

static int write_json(const device_table *table, const char *path) {
    output_set outputs = {0};
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "schema", "clattn-devices-1");
    cJSON_AddStringToObject(root, "version", clattn_version());
    cJSON_AddStringToObject(root, "auto", table->picked.id);
    cJSON_AddStringToObject(root, "why", table->why);
    cJSON *list = cJSON_AddArrayToObject(root, "devices");
    for (size_t i = 0; i < table->count; i++) cJSON_AddItemToArray(list, device_json(&table->devices[i]));
    if (!json_write(&outputs, path, root)) return cli_fail(command.name, CLI_USAGE, "--json: %s", outputs.error);
    return output_commit(&outputs) ? CLI_SUCCESS : cli_fail(command.name, CLI_FAILURE, "%s", outputs.error);
}
#endif

static int show(const device_table *table, const char *json) {
#ifdef CLATTN_HAVE_CJSON
    if (json != NULL) {
        int exit_code = write_json(table, json);
        if (exit_code != CLI_SUCCESS || strcmp(json, "-") == 0) return exit_code;
    }
#else
    (void)json;
#endif
    print_table(table);
    return CLI_SUCCESS;
}

int devices_main(int argc, char **argv) {
    devices_options options = {0};
    device_table table = {0};
    int exit_code;
    if (cli_parse(&command, argc, argv, &options, &exit_code) < 0) return exit_code;
    if (options.json != NULL && json_missing() != NULL) return cli_fail(command.name, CLI_USAGE, "--json: %s", json_missing());
    exit_code = gather(&table);
    if (exit_code == CLI_SUCCESS) exit_code = show(&table, options.json);
    free(table.devices);
    free(table.why);
    return exit_code;
}
