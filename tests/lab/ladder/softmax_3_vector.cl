// lab: local 1 tile 8
// Sixteen columns at once, for a CPU: no work-group, exp in vectors, a tail of its own.
#define WIDTH 16
kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    for (int i = get_group_id(0) * 8; i < rows && i < get_group_id(0) * 8 + 8; i++) {
        global const float *from = scores + (size_t)i * cols;
        global float *to = weights + (size_t)i * cols;
        const int whole = cols / WIDTH * WIDTH;
        float16 most = -INFINITY, sums = 0.0f;
        for (int j = 0; j < whole; j += WIDTH) most = fmax(most, vload16(0, from + j));
        float8 m8 = fmax(most.lo, most.hi);
        float4 m4 = fmax(m8.lo, m8.hi);
        float row_max = fmax(fmax(m4.x, m4.y), fmax(m4.z, m4.w));
        for (int j = whole; j < cols; j++) row_max = fmax(row_max, from[j]);
        for (int j = 0; j < whole; j += WIDTH) {
            const float16 weight = exp(vload16(0, from + j) - row_max);
            sums += weight;
            vstore16(weight, 0, to + j);
        }
        float8 s8 = sums.lo + sums.hi;
        float4 s4 = s8.lo + s8.hi;
        float row_sum = s4.x + s4.y + s4.z + s4.w;
        for (int j = whole; j < cols; j++) row_sum += to[j] = exp(from[j] - row_max);
        const float factor = 1.0f / row_sum;
        for (int j = 0; j < whole; j += WIDTH) vstore16(vload16(0, to + j) * factor, 0, to + j);
        for (int j = whole; j < cols; j++) to[j] *= factor;
    }
}
