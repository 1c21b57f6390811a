kernel void soft_max(global const float *scores, global float *weights, int rows, int cols) {
    weights[0] = scores[0] + rows + cols;
}
