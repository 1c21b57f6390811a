// Doubles where floats are wanted.
kernel void softmax(global const float *scores, global int *weights, int rows, int cols) {
    weights[0] = (int)scores[0] + rows + cols;
}
