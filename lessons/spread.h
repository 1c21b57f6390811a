/* How spread out scores and weights are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLATTN_LESSONS_SPREAD_H
#define CLATTN_LESSONS_SPREAD_H

#include "mat.h"

double spread_variance(mat);
/* The mean entropy of the rows over that of equal weights: 1 is equal, 0 is all on one. */
double spread_entropy(mat weights);
/* The mean over rows of the largest weight. */
double spread_largest(mat weights);
/* The mean over rows of sum a (1 - a), the trace of softmax's derivative: what is left of a gradient that goes back through it.
 */
double spread_gradient(mat weights);

#endif
