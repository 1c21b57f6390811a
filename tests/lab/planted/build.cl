kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
    weights[i] = scores[i] +;
}
