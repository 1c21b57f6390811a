// One work-item a row, three walks over it.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
    global const float *from = scores + (size_t)i * cols;
    global float *to = weights + (size_t)i * cols;
    float row_max = -INFINITY, row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_max = fmax(row_max, from[j]);
    for (int j = 0; j < cols; j++) row_sum += exp(from[j] - row_max);
    for (int j = 0; j < cols; j++) to[j] = exp(from[j] - row_max) / row_sum;
}
