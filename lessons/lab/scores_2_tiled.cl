// lab: local 16 16 tile 16 16
// A work-group brings 16 rows of q and of k into local memory, 16 elements of each at a time, and uses them 16 times.
#define TILE 16
kernel void scores(global const float *q, global const float *k, global float *scores, int len_q, int len_kv, int head_dim,
                   float scale) {
    local float q_tile[TILE][TILE + 1], k_tile[TILE][TILE + 1];
    const int x = get_local_id(0), y = get_local_id(1);
    const int first_j = get_group_id(0) * TILE, i = get_group_id(1) * TILE + y, j = first_j + x;
    float sum = 0.0f;
    for (int first = 0; first < head_dim; first += TILE) {
        const int d = first + x;
        q_tile[y][x] = i < len_q && d < head_dim ? q[i * head_dim + d] : 0.0f;
        k_tile[y][x] = first_j + y < len_kv && d < head_dim ? k[(first_j + y) * head_dim + d] : 0.0f;
        /* YOURS: wait until both tiles are there; multiply row y of q_tile with row x of k_tile; wait until all have read */
    }
    if (i < len_q && j < len_kv) scores[i * len_kv + j] = scale * sum;
}
