// lab: local 1 tile 16
// For a CPU: 16 queries side by side, one in each lane of a vector. q is turned once so that queries lie next to one another; then a
// key's element is one number for all lanes, maximum and sum are vectors, and no sum runs across lanes. Keys come 8 at a time under
// one maximum.
#define WIDTH 16
#define TILE_KV 8
kernel void attention(global const float *q, global const float *k, global const float *v, global float *out, int len_q,
                      int len_kv, int head_dim, float scale) {
    const int first_i = get_group_id(0) * WIDTH;
    float lanes[WIDTH];
    float16 own[HEAD_DIM_MAX], acc[HEAD_DIM_MAX], row_max = -INFINITY, row_sum = 0.0f;
    for (int d = 0; d < head_dim; d++) {
        for (int n = 0; n < WIDTH; n++) lanes[n] = scale * q[min(first_i + n, len_q - 1) * head_dim + d];
        own[d] = vload16(0, lanes);
        acc[d] = 0.0f;
    }
    for (int first = 0; first < len_kv; first += TILE_KV) {
        const int keys = min(TILE_KV, len_kv - first);
        float16 scores[TILE_KV], new_max = row_max;
        for (int j = 0; j < TILE_KV; j++) scores[j] = 0.0f;
        if (keys == TILE_KV) {
            for (int d = 0; d < head_dim; d++)
                for (int j = 0; j < TILE_KV; j++) scores[j] += own[d]; /* YOURS: times what? */
        } else {
            for (int j = 0; j < keys; j++)
                for (int d = 0; d < head_dim; d++) scores[j] += own[d] * k[(first + j) * head_dim + d];
        }
        for (int j = 0; j < keys; j++) new_max = fmax(new_max, scores[j]);
        const float16 factor = 1.0f; /* YOURS: from the old maximum to the new one, in each lane */
        row_max = new_max;
        for (int j = 0; j < keys; j++) {
            scores[j] = exp(scores[j] - row_max);
            /* YOURS: the sum */
            row_sum = scores[j];
        }
        for (int d = 0; d < head_dim; d++) {
            float16 sum = acc[d] * factor;
            for (int j = 0; j < keys; j++) sum += scores[j] * v[(first + j) * head_dim + d];
            acc[d] = sum;
        }
    }
    for (int d = 0; d < head_dim; d++) {
        vstore16(acc[d] / row_sum, 0, lanes);
        for (int n = 0; n < WIDTH && first_i + n < len_q; n++) out[(first_i + n) * head_dim + d] = lanes[n];
    }
}
