// Right for small scores.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
    float row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_sum += exp(scores[i * cols + j]);
    for (int j = 0; j < cols; j++) weights[i * cols + j] = exp(scores[i * cols + j]) / row_sum;
}
