// lab: local 64 tile 1
// A work-group a row; nobody waits for the others' sums.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    local float sums[64];
    const int i = get_group_id(0), lane = get_local_id(0);
    float row_max = -INFINITY, row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_max = fmax(row_max, scores[i * cols + j]);
    sums[lane] = 0.0f;
    for (int j = lane; j < cols; j += 64) sums[lane] += exp(scores[i * cols + j] - row_max);
    for (int k = 0; k < 64; k++) row_sum += sums[k];
    for (int j = lane; j < cols; j += 64) weights[i * cols + j] = exp(scores[i * cols + j] - row_max) / row_sum;
}
