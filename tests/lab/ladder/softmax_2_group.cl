// lab: local 64 tile 1
// A work-group a row: its work-items walk the row side by side, then join what they found.
#define LANES 64
#define JOIN(values, operation)                                                          \
    for (int reach = LANES / 2; reach > 0; reach /= 2) {                                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                                    \
        if (lane < reach) values[lane] = operation(values[lane], values[lane + reach]);  \
    }                                                                                    \
    barrier(CLK_LOCAL_MEM_FENCE);
#define PLUS(a, b) ((a) + (b))

kernel void softmax(global const float *scores, global float *weights, int rows, int cols) {
    local float most[LANES], sums[LANES];
    const int i = get_group_id(0), lane = get_local_id(0);
    global const float *from = scores + (size_t)i * cols;
    global float *to = weights + (size_t)i * cols;
    most[lane] = -INFINITY;
    for (int j = lane; j < cols; j += LANES) most[lane] = fmax(most[lane], from[j]);
    JOIN(most, fmax)
    const float row_max = most[0];
    sums[lane] = 0.0f;
    for (int j = lane; j < cols; j += LANES) sums[lane] += exp(from[j] - row_max);
    JOIN(sums, PLUS)
    const float factor = 1.0f / sums[0];
    for (int j = lane; j < cols; j += LANES) to[j] = exp(from[j] - row_max) * factor;
}
