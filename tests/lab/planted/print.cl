// Not right, and says so.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i == 0) printf("row of %d columns: %f\n", cols, scores[0] * 0.0f + 1.5f);
    if (i < rows)
        for (int j = 0; j < cols; j++) weights[i * cols + j] = 2.0f;
}
