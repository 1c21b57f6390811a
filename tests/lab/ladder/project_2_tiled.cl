// lab: local 16 16 tile 16 16
// A work-group brings a square of x and one of w into local memory, and uses each element 16 times.
#define TILE 16
kernel void project(global const float *x, global const float *w, global const float *bias, global float *y, int rows, int depth,
                    int cols) {
    local float x_tile[TILE][TILE], w_tile[TILE][TILE];
    const int a = get_local_id(0), b = get_local_id(1);
    const int c = get_group_id(0) * TILE + a, r = get_group_id(1) * TILE + b;
    float sum = c < cols ? bias[c] : 0.0f;
    for (int first = 0; first < depth; first += TILE) {
        x_tile[b][a] = r < rows && first + a < depth ? x[r * depth + first + a] : 0.0f;
        w_tile[b][a] = c < cols && first + b < depth ? w[(first + b) * cols + c] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = 0; n < TILE; n++) sum += x_tile[b][n] * w_tile[n][a];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (r < rows && c < cols) y[r * cols + c] = sum;
}
