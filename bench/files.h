/* Files that the program carries along; see cmake/embed_files.cmake.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_BENCH_FILES_H
#define CLATTN_BENCH_FILES_H

extern const char bench_file_limits_cl[], bench_file_report_html[], bench_file_report_css[], bench_file_report_js[];
extern const char bench_file_peer_torch_py[];

#endif
