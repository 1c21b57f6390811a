/* list_builds SET FOLDER: every build of the kernel table's OpenCL rows, and their sources.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A build is what the host would give a driver: the embedded source, written to FOLDER, and the options that
 * clattn__row_options makes of a row and of the variant that serves some parameters. One line each on stdout, fields separated
 * by tabs:
 *
 *   row  family  devices  entry  source  WORK_GROUP  set  options
 *
 * SET says which variants:
 *   pairwise   "plain", the first of each type and option with the largest sizes; "full", the last of everything; and "pairwise",
 *              more until each pair of values of two macros stands in some build; at most MOST_BUILDS
 *   product    "plain", "full" and "product", all others
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../host/internal.h"

enum { MOST_BUILDS = 60, MOST_COMBINATIONS = 1 << 10 };

/* ---- combinations ---------------------------------------------------------------------------------------------------- */

/* Of each line of variants.def that a role has, the number of a value. */
typedef struct combination {
    unsigned char value[CLATTN__MAX_MACROS];
} combination;

typedef struct factors {
    const clattn__variant_info *of[CLATTN__MAX_MACROS];
    int count;
} factors;

static factors role_factors(clattn__role role) {
    factors f = {0};
    for (const clattn__variant_info *info = clattn__variants; info < clattn__variants + clattn__variant_count; info++)
        if (info->role == role) f.of[f.count++] = info;
    return f;
}

/* Parameters that ask for a combination. */
static clattn__params params_of(const clattn__row *row, const combination *c) {
    const clattn__role role = row->role;
    clattn__params params = {0};
    size_t line = 0;
    int n = 0;
    if (role == CLATTN__ROLE_ATTENTION_SPLIT) {
        params.attention.heads_q = params.attention.heads_kv = 1;
        params.attention.len_q = clattn__row_macro(row, "LANES_FILLED", 0) ? clattn__row_lanes(row) : 1;
    }
#define VARIANT(of_role, macro, parameter, kind, list)                                                                         \
    if (role == CLATTN__ROLE_##of_role) params.parameter = clattn__variants[line].values[c->value[n++]];                       \
    line++;
#include "../../kernels/variants.def"
#undef VARIANT
    return params;
}

/* A device that has what a row asks for, and no more. */
static clattn__device device_of(const clattn__row *row) {
    return (clattn__device){
        .has_cpu_family = row->family == CLATTN__FAMILY_CPU,
        .has_gpu_family = row->family == CLATTN__FAMILY_GPU,
        .mma = clattn__row_macro(row, "MMA", 0),
        .vector_width = clattn__row_macro(row, "VECTOR_WIDTH", 0),
        .max_work_group = (size_t)clattn__row_macro(row, "WORK_GROUP", 1),
        .local_bytes = (size_t)clattn__row_macro(row, "LOCAL_BYTES", 0),
    };
}

/* Whether the host would ever build it. */
static bool serves(const clattn__row *row, const combination *c, clattn__variant *variant) {
    const clattn__params params = params_of(row, c);
    const clattn__device device = device_of(row);
    return clattn__role_variant(row->role, &params, variant) && !clattn__row_obstacle(row, &device, variant, &params);
}

/* All combinations of a row that serve, the first factor changing fastest; their number. */
static int all_combinations(const clattn__row *row, const factors *f, combination *all) {
    combination at = {0};
    clattn__variant variant;
    int count = 0, n;
    do {
        if (count < MOST_COMBINATIONS && serves(row, &at, &variant)) all[count++] = at;
        for (n = 0; n < f->count && ++at.value[n] == f->of[n]->count; n++) at.value[n] = 0;
    } while (n < f->count);
    return count;
}

/* ---- sets -------------------------------------------------------------------------------------------------------------- */

/* The largest sizes that serve, with everything else as it is in the first. */
static int plain_of(const factors *f, const combination *all, int count) {
    int best = 0;
    for (int c = 1; c < count; c++) {
        bool plain = true;
        for (int n = 0; n < f->count; n++) plain &= !f->of[n]->exact || all[c].value[n] == all[0].value[n];
        if (plain) best = c; /* sizes ascend */
    }
    return best;
}

/* How many pairs of values a combination has that no chosen one has. */
static int new_pairs(const factors *f, const combination *all, const int *chosen, int chosen_count, int candidate) {
    int fresh = 0;
    for (int m = 0; m < f->count; m++)
        for (int n = m + 1; n < f->count; n++) {
            bool seen = false;
            for (int c = 0; c < chosen_count && !seen; c++)
                seen = all[chosen[c]].value[m] == all[candidate].value[m] && all[chosen[c]].value[n] == all[candidate].value[n];
            fresh += !seen;
        }
    return fresh;
}

/* Greedy: always the combination with most new pairs. Returns how many are chosen now. */
static int add_pairwise(const factors *f, const combination *all, int count, int *chosen, int chosen_count) {
    while (chosen_count < MOST_BUILDS) {
        int best = -1, most = 0;
        for (int c = 0; c < count; c++) {
            const int fresh = new_pairs(f, all, chosen, chosen_count, c);
            if (fresh > most) {
                most = fresh;
                best = c;
            }
        }
        if (best < 0) break;
        chosen[chosen_count++] = best;
    }
    return chosen_count;
}

/* ---- output ------------------------------------------------------------------------------------------------------------ */

static void print_devices(clattn__devices devices) {
    static const struct {
        clattn__devices device;
        const char *name;
    } names[] = {
        {CLATTN__CPUS, "cpu"},    {CLATTN__NVIDIA, "nvidia"}, {CLATTN__AMD, "amd"},
        {CLATTN__INTEL, "intel"}, {CLATTN__SMALL, "small"},
    };
    const char *separator = "";
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (devices & names[n].device) {
            printf("%s%s", separator, names[n].name);
            separator = ",";
        }
}

static bool print_build(const clattn__row *row, const combination *c, const char *set) {
    static const char *const families[] = {[CLATTN__FAMILY_CPU] = "cpu", [CLATTN__FAMILY_GPU] = "gpu"};
    clattn__text options = {0};
    clattn__variant variant;
    if (serves(row, c, &variant)) clattn__row_options(row, &variant, device_of(row).mma, &options);
    const bool good = options.data && !options.failed;
    if (good) {
        printf("%s\t%s\t", row->name, families[row->family]);
        print_devices(row->devices);
        printf("\t%s\t%s\t%d\t%s\t%s\n", clattn__roles[row->role].entry, row->source, clattn__row_macro(row, "WORK_GROUP", 1),
               set, options.data);
    }
    clattn__text_free(&options);
    return good;
}

static bool print_row(const clattn__row *row, const char *set) {
    static combination all[MOST_COMBINATIONS];
    int chosen[MOST_COMBINATIONS], chosen_count = 0;
    const factors f = role_factors(row->role);
    const int count = all_combinations(row, &f, all);
    if (count == 0 || count == MOST_COMBINATIONS) return false;
    const int plain = plain_of(&f, all, count);
    chosen[chosen_count++] = plain;
    if (plain != count - 1) chosen[chosen_count++] = count - 1;
    if (strcmp(set, "pairwise") == 0) chosen_count = add_pairwise(&f, all, count, chosen, chosen_count);
    if (strcmp(set, "product") == 0)
        for (int c = 0; c < count; c++)
            if (c != plain && c != count - 1) chosen[chosen_count++] = c;
    bool good = true;
    for (int n = 0; n < chosen_count && good; n++)
        good = print_build(row, &all[chosen[n]], n == 0 ? "plain" : n == 1 ? "full" : set);
    return good;
}

/* The source as the library embeds it, at FOLDER/gpu/attention.cl. */
static bool write_source(const char *folder, const char *path) {
    const char *text = clattn__kernel_source(path);
    char name[4096];
    if (!text || snprintf(name, sizeof name, "%s/%s", folder, path) >= (int)sizeof name) return false;
    char *slash = strrchr(name, '/');
    *slash = 0;
    if (mkdir(name, 0777) != 0 && errno != EEXIST) return false;
    *slash = '/';
    FILE *file = fopen(name, "w");
    if (!file) return false;
    const bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

int main(int argc, char **argv) {
    if (argc != 3 || (strcmp(argv[1], "pairwise") && strcmp(argv[1], "product"))) {
        fprintf(stderr, "usage: list_builds pairwise|product FOLDER\n");
        return 2;
    }
    for (const clattn__row *row = clattn__rows; row < clattn__rows + clattn__row_count; row++) {
        if (row->family == CLATTN__FAMILY_CLBLAST || row->family == CLATTN__FAMILY_NATIVE) continue;
        if (!write_source(argv[2], row->source)) {
            fprintf(stderr, "list_builds: cannot write %s to %s\n", row->source, argv[2]);
            return 1;
        }
        if (!print_row(row, argv[1])) {
            fprintf(stderr, "list_builds: no build of row %s\n", row->name);
            return 1;
        }
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
