// Ends its process by an instruction that none may execute.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
    if (scores[(size_t)i * cols] < 1e30f) __builtin_trap();
    weights[(size_t)i * cols] = 1.0f;
}
