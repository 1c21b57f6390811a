// lab: local 32 tile 32
// As fused, but a work-group of 32 queries brings 16 keys and values into local memory at a time, and each is used 32 times. The
// scores of a tile are joined under one maximum: one rescaling for 16 keys.
#define TILE_Q 32
#define TILE_KV 16
kernel void attention(global const float *q, global const float *k, global const float *v, global float *out, int len_q,
                      int len_kv, int head_dim, float scale) {
    local float k_tile[TILE_KV * HEAD_DIM_MAX], v_tile[TILE_KV * HEAD_DIM_MAX];
    const int lane = get_local_id(0), i = get_global_id(0);
    float own[HEAD_DIM_MAX], acc[HEAD_DIM_MAX], row_max = -INFINITY, row_sum = 0.0f;
    for (int d = 0; d < head_dim; d++) {
        own[d] = i < len_q ? scale * q[i * head_dim + d] : 0.0f;
        acc[d] = 0.0f;
    }
    for (int first = 0; first < len_kv; first += TILE_KV) {
        const int keys = min(TILE_KV, len_kv - first);
        float scores[TILE_KV], new_max = row_max;
        barrier(CLK_LOCAL_MEM_FENCE); /* the last tile has been read */
        for (int n = lane; n < keys * head_dim; n += TILE_Q) {
            k_tile[n] = k[first * head_dim + n];
            v_tile[n] = v[first * head_dim + n];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < keys; j++) {
            float sum = 0.0f;
            for (int d = 0; d < head_dim; d++) sum += own[d] * k_tile[j * head_dim + d];
            scores[j] = sum;
            new_max = fmax(new_max, sum);
        }
        const float factor = exp(row_max - new_max);
        row_sum *= factor;
        row_max = new_max;
        for (int d = 0; d < head_dim; d++) acc[d] *= factor;
        for (int j = 0; j < keys; j++) {
            const float weight = exp(scores[j] - row_max);
            row_sum += weight;
            for (int d = 0; d < head_dim; d++) acc[d] += weight * v_tile[j * head_dim + d];
        }
    }
    for (int d = 0; d < head_dim && i < len_q; d++) out[i * head_dim + d] = acc[d] / row_sum;
}
