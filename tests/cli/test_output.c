/* Files that appear whole or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _XOPEN_SOURCE 700
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"

static char directory[] = "/tmp/clattn-test-output-XXXXXX";
static output_set set;

static void enter_directory(void) {
    strcpy(directory + strlen(directory) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    memset(&set, 0, sizeof set);
}

static size_t count_files(bool remove_them) {
    size_t count = 0;
    DIR *open = opendir(directory);
    ck_assert_ptr_nonnull(open);
    for (const struct dirent *entry; (entry = readdir(open)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (remove_them) ck_assert_int_eq(remove(entry->d_name), 0);
    }
    closedir(open);
    return count;
}

static void leave_directory(void) {
    count_files(true);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void assert_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(found, text);
}

static void put(const char *path, const char *text) {
    FILE *file = output_open(&set, path);
    ck_assert_msg(file != NULL, "%s", set.error);
    fputs(text, file);
}

START_TEST(appear_at_commit) {
    write_file("old", "before");
    put("old", "after");
    put("new", "made");
    assert_holds("old", "before");
    ck_assert_int_ne(access("new", F_OK), 0);
    ck_assert_msg(output_commit(&set), "%s", set.error);
    assert_holds("old", "after");
    assert_holds("new", "made");
    ck_assert_uint_eq(count_files(false), 2);
}
END_TEST

START_TEST(discarded_leave_nothing) {
    write_file("old", "before");
    put("old", "after");
    put("new", "made");
    output_discard(&set);
    assert_holds("old", "before");
    ck_assert_uint_eq(count_files(false), 1);
}
END_TEST

/* The last of three cannot be renamed: the first, which existed, and the second, which did not, are as they were. */
START_TEST(a_failed_rename_undoes_the_others) {
    write_file("old", "before");
    put("old", "after");
    put("new", "made");
    put("blocked", "made");
    ck_assert_int_eq(mkdir("blocked", 0777), 0);
    ck_assert(!output_commit(&set));
    ck_assert_ptr_nonnull(strstr(set.error, "blocked"));
    assert_holds("old", "before");
    ck_assert_int_ne(access("new", F_OK), 0);
    ck_assert_uint_eq(count_files(false), 2);
}
END_TEST

START_TEST(what_cannot_be_opened_discards_the_set) {
    static const char *const paths[] = {"missing/x", ".", "", "old/x"};
    write_file("old", "before");
    put("new", "made");
    ck_assert_ptr_null(output_open(&set, paths[_i]));
    ck_assert_uint_gt(strlen(set.error), 0);
    ck_assert_uint_eq(set.count, 0);
    ck_assert_uint_eq(count_files(false), 1);
}
END_TEST

START_TEST(a_full_device_discards_the_set) {
    if (access("/dev/full", W_OK) != 0) return; /* only Linux has it */
    put("new", "made");
    put("/dev/full", "lost");
    ck_assert(!output_commit(&set));
    ck_assert_ptr_nonnull(strstr(set.error, "/dev/full"));
    ck_assert_uint_eq(count_files(false), 0);
}
END_TEST

START_TEST(links_are_followed) {
    write_file("old", "before");
    ck_assert_int_eq(symlink("old", "link"), 0);
    put("link", "after");
    ck_assert_msg(output_commit(&set), "%s", set.error);
    assert_holds("old", "after");
    struct stat status;
    ck_assert_int_eq(lstat("link", &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
}
END_TEST

START_TEST(permissions_are_those_of_a_new_file) {
    mode_t mask = umask(027);
    put("new", "made");
    ck_assert(output_commit(&set));
    umask(mask);
    struct stat status;
    ck_assert_int_eq(stat("new", &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
}
END_TEST

START_TEST(same_file_under_other_names) {
    char whole[128];
    write_file("old", "");
    ck_assert_int_eq(symlink("old", "link"), 0);
    ck_assert_int_eq(link("old", "twin"), 0);
    snprintf(whole, sizeof whole, "%s/new", directory);
    ck_assert(output_same_file("old", "link"));
    ck_assert(output_same_file("old", "twin"));
    ck_assert(output_same_file("old", "./old"));
    ck_assert(output_same_file("new", "./new"));
    ck_assert(output_same_file("new", whole));
    ck_assert(!output_same_file("new", "old"));
    ck_assert(!output_same_file("new", "newer"));
    ck_assert(!output_same_file("missing/new", "new"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("output");
    TCase *tests = tcase_create("output");
    tcase_add_checked_fixture(tests, enter_directory, leave_directory);
    tcase_add_test(tests, appear_at_commit);
    tcase_add_test(tests, discarded_leave_nothing);
    tcase_add_test(tests, a_failed_rename_undoes_the_others);
    tcase_add_loop_test(tests, what_cannot_be_opened_discards_the_set, 0, 4);
    tcase_add_test(tests, a_full_device_discards_the_set);
    tcase_add_test(tests, links_are_followed);
    tcase_add_test(tests, permissions_are_those_of_a_new_file);
    tcase_add_test(tests, same_file_under_other_names);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
