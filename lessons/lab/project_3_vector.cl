// lab: local 1 1 tile 16 8
// For a CPU: no work-group, but vectors. A work-item computes 8 rows of 16 columns, so that a vector of w is used 8 times while it
// is in a register. What does not fill a vector goes column by column.
#define ROWS 8
#define WIDTH 16
kernel void project(global const float *x, global const float *w, global const float *bias, global float *y, int rows, int depth,
                    int cols) {
    const int c = get_group_id(0) * WIDTH, r = get_group_id(1) * ROWS;
    if (c + WIDTH <= cols && r + ROWS <= rows) {
        float16 sums[ROWS];
        for (int n = 0; n < ROWS; n++) sums[n] = vload16(0, bias + c);
        for (int d = 0; d < depth; d++) {
            const float16 column = vload16(0, w + d * cols + c);
            /* YOURS: one element of x for each row, times the vector */
            sums[0] += column;
        }
        for (int n = 0; n < ROWS; n++) vstore16(sums[n], 0, y + (r + n) * cols + c);
        return;
    }
    for (int i = r; i < min(r + ROWS, rows); i++) {
        for (int j = c; j < min(c + WIDTH, cols); j++) {
            float sum = bias[j];
            /* YOURS: and the plain product for what is left over */
            y[i * cols + j] = sum;
        }
    }
}
