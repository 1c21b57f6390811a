/* The files of a page; see cmake/embed_files.cmake.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_PAGE_FILES_H
#define CLATTN_LESSONS_PAGE_FILES_H

/* The scripts, in the order in which they are read. */
#define PAGE_SCRIPTS(X)                                                                                                        \
    X(common_js)                                                                                                               \
    X(rules_js)                                                                                                                \
    X(matrix_js)                                                                                                               \
    X(plot_js)                                                                                                                 \
    X(space_js)                                                                                                                \
    X(graph_js)                                                                                                                \
    X(lanes_js)                                                                                                                \
    X(player_js)                                                                                                               \
    X(head_js)                                                                                                                 \
    X(whatif_js)                                                                                                               \
    X(page_js)

#define PAGE_X(name) extern const char page_file_##name[], page_hash_##name[];
PAGE_SCRIPTS(PAGE_X)
#undef PAGE_X
extern const char page_file_page_html[], page_file_page_css[], page_hash_page_css[];

#endif
