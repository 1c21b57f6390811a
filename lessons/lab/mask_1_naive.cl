// One work-item an element.
kernel void mask(global const float *scores, global float *masked, int len_q, int len_kv) {
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= len_q || j >= len_kv) return;
    /* YOURS: what a query may see, and what not. Which keys are after it? */
    masked[i * len_kv + j] = scores[i * len_kv + j];
}
