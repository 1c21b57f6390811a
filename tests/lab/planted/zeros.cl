kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
    for (int j = 0; j < cols; j++) weights[i * cols + j] = 0.0f * scores[i * cols + j];
}
