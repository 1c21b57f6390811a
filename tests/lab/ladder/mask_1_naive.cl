// One work-item an element.
kernel void mask(global const float *scores, global float *masked, int len_q, int len_kv) {
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= len_q || j >= len_kv) return;
    masked[i * len_kv + j] = j <= i ? scores[i * len_kv + j] : -INFINITY;
}
