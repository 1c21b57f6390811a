/* SPDX-License-Identifier: Apache-2.0 */
#include "courses.h"

#define SENTENCE (LESSON_SEED | LESSON_TEXT)
#define PAIRS (LESSON_LENGTHS | LESSON_SEED | LESSON_PAIRS | LESSON_DIM)

/* clang-format off */
const lesson_entry lesson_table[] = {
    {"rnn-step", "循环网络：一步一步改写记忆", "The recurrence: memory rewritten word by word", 3, 0, lesson_rnn_step},
    {"rnn-bottleneck", "瓶颈：第一个词去哪儿了", "The bottleneck: where did the first word go?", 4, PAIRS, lesson_rnn_bottleneck},
    {"lstm-memory", "LSTM：传送带和三道门", "The LSTM: a conveyor belt and three gates", 4, PAIRS | LESSON_FORGET_BIAS, lesson_lstm_memory},
    {"serial-steps", "排队：一步等一步", "The queue: what a step has to wait for", 4, LESSON_LENGTHS | LESSON_DIM | LESSON_TEXT, lesson_serial_steps},
    {"alignment", "回头看：注意力的诞生", "Looking back: attention is born", 4, 0, lesson_alignment},
    {"projection", "投影：戴上眼镜再比较", "Projection: compare with glasses on", 4, 0, lesson_projection},
    {"matmul", "矩阵乘法：一行配一列", "The matrix product: a row with a column", 3, 0, lesson_matmul},
    {"qkv", "Q、K、V：一个词，三种读法", "Q, K, V: one word, read three ways", 4, LESSON_SEED | LESSON_DIM | LESSON_TEXT, lesson_qkv},
    {"word-vectors", "词向量搬家：Q、K、V 全过程", "Words that move: Q, K and V from start to end", 6, SENTENCE, lesson_word_vectors},
    {"heads", "多头：分开看，合起来用", "Heads: look apart, use together", 4, SENTENCE, lesson_heads},
    {"mask", "掩码：不许偷看", "Masks: no peeking", 4, SENTENCE, lesson_mask},
    {"softmax", "softmax：怎样算才不溢出", "Softmax: how not to overflow", 5, 0, lesson_softmax},
    {"scaling", "缩放：为什么除以 √d_k", "Scaling: why divide by √d_k", 4, LESSON_SEED | LESSON_DIM, lesson_scaling},
    {"memory", "内存：平方的代价", "Memory: the price of a square", 4, LESSON_LENGTHS | LESSON_DIM, lesson_memory},
    {"positions", "位置：告诉它谁先谁后", "Positions: telling who comes first", 4, LESSON_LENGTHS | LESSON_SEED | LESSON_DIM | LESSON_TEXT, lesson_positions},
    {"parameters", "参数量：LSTM 对注意力", "Parameters: the LSTM against attention", 3, LESSON_DIM, lesson_parameters_count},
    {"initialisation", "初始化：随机多大才好", "Initialisation: how large is random?", 4, LESSON_SEED | LESSON_DIM, lesson_initialisation},
    {"head-dim", "头的宽度：设备喜欢哪一种", "The width of a head: what the device likes", 3, LESSON_LENGTHS, lesson_head_dim},
    {NULL},
};
/* clang-format on */
