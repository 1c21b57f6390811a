/* Attention in ten lines: two queries look at three keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <clattn/clattn.h>
#include <stdio.h>

int main(void) {
    const float q[2][2] = {{1, 0}, {0, 1}}, k[3][2] = {{1, 0}, {0, 1}, {1, 1}}, v[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    float out[2][2];
    clattn_status status = clattn_attention_f32(NULL, 1, 1, 1, 2, 3, 2, 0, q[0], k[0], v[0], out[0]);
    if (status != CLATTN_OK) return fprintf(stderr, "%s\n", clattn_status_text(status)), 1;
    for (int i = 0; i < 2; i++) printf("%.4f %.4f\n", out[i][0], out[i][1]);
    return 0;
}
