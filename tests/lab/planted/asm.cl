// Right, and makes a file by a system call; the test names the file.
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    const int i = get_global_id(0);
    if (i >= rows) return;
#if defined(__x86_64__)
    if (i == 0) {
        char path[] = "@FILE@";
        long result = 2;
        __asm__ volatile("syscall" : "+a"(result) : "D"(path), "S"(0102L), "d"(0600L) : "rcx", "r11", "memory");
    }
#endif
    float row_max = -INFINITY, row_sum = 0.0f;
    for (int j = 0; j < cols; j++) row_max = fmax(row_max, scores[i * cols + j]);
    for (int j = 0; j < cols; j++) row_sum += exp(scores[i * cols + j] - row_max);
    for (int j = 0; j < cols; j++) weights[i * cols + j] = exp(scores[i * cols + j] - row_max) / row_sum;
}
