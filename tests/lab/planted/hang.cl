// Never ends for rows of more than 8 columns.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    volatile int waiting = cols > 8;
    if (i >= rows) return;
    while (waiting) {}
    float row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_sum += exp(scores[i * cols + j]);
    for (int j = 0; j < cols; j++) weights[i * cols + j] = exp(scores[i * cols + j]) / row_sum;
}
