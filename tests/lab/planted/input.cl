// Right, with the exponentials kept in the input.
kernel void softmax(global float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
    float row_max = -INFINITY, row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_max = fmax(row_max, scores[i * cols + j]);
    for (int j = 0; j < cols; j++) row_sum += scores[i * cols + j] = exp(scores[i * cols + j] - row_max);
    for (int j = 0; j < cols; j++) weights[i * cols + j] = scores[i * cols + j] / row_sum;
}
