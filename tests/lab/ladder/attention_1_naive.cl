// One work-item a query, which walks over the keys three times and computes each score anew: no matrix is kept, and most of the
// work is done three times.
float score_of(global const float *q, global const float *k, int head_dim, float scale) {
    float sum = 0.0f;
    for (int d = 0; d < head_dim; d++) sum += q[d] * k[d];
    return scale * sum;
}

kernel void attention(global const float *q, global const float *k, global const float *v, global float *out, int len_q,
                      int len_kv, int head_dim, float scale) {
    const int i = get_global_id(0);
    if (i >= len_q) return;
    float acc[HEAD_DIM_MAX], row_max = -INFINITY, row_sum = 0.0f;
    q += i * head_dim;
    for (int d = 0; d < head_dim; d++) acc[d] = 0.0f;
    for (int j = 0; j < len_kv; j++) row_max = fmax(row_max, score_of(q, k + j * head_dim, head_dim, scale));
    for (int j = 0; j < len_kv; j++) row_sum += exp(score_of(q, k + j * head_dim, head_dim, scale) - row_max);
    for (int j = 0; j < len_kv; j++) {
        const float weight = exp(score_of(q, k + j * head_dim, head_dim, scale) - row_max) / row_sum;
        for (int d = 0; d < head_dim; d++) acc[d] += weight * v[j * head_dim + d];
    }
    for (int d = 0; d < head_dim; d++) out[i * head_dim + d] = acc[d];
}
