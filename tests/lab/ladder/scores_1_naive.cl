// One work-item an element: a row of q times a row of k.
kernel void scores(global const float *q, global const float *k, global float *scores, int len_q, int len_kv, int head_dim,
                   float scale) {
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= len_q || j >= len_kv) return;
    float sum = 0.0f;
    for (int d = 0; d < head_dim; d++) sum += q[i * head_dim + d] * k[j * head_dim + d];
    scores[i * len_kv + j] = scale * sum;
}
