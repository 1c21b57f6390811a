/* D3, as pages carry it: see cmake/embed_files.cmake.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_THIRD_PARTY_D3_H
#define CLATTN_THIRD_PARTY_D3_H

extern const char d3_file_d3_min_js[], d3_hash_d3_min_js[];

#endif
