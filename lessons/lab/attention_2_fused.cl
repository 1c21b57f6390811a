// One work-item a query, one walk over the keys: when a larger score comes, what has been summed so far is scaled down to it.
kernel void attention(global const float *q, global const float *k, global const float *v, global float *out, int len_q,
                      int len_kv, int head_dim, float scale) {
    const int i = get_global_id(0);
    if (i >= len_q) return;
    float acc[HEAD_DIM_MAX], row_max = -INFINITY, row_sum = 0.0f;
    q += i * head_dim;
    for (int d = 0; d < head_dim; d++) acc[d] = 0.0f;
    for (int j = 0; j < len_kv; j++) {
        float score = 0.0f;
        for (int d = 0; d < head_dim; d++) score += q[d] * k[j * head_dim + d];
        score *= scale;
        /* YOURS: this is right as long as no score is larger than the first. What becomes of row_sum and acc when one is? */
        row_max = j == 0 ? score : row_max;
        const float weight = fmin(exp(score - row_max), 1.0f);
        row_sum += weight;
        for (int d = 0; d < head_dim; d++) acc[d] += weight * v[j * head_dim + d];
    }
    for (int d = 0; d < head_dim; d++) out[i * head_dim + d] = acc[d] / row_sum;
}
