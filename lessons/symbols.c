/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <stddef.h>

/* clang-format off */
const lesson_symbol lesson_symbols[] = {
    {"t", "rnn-step", "第几步，从 1 数起", "the number of a step, from 1"},
    {"x, X", "rnn-step", "一个词的向量；整句的，一行一个词", "the vector of a word; of all words, a row each"},
    {"h", "rnn-step", "循环网络的隐藏状态：它的记忆", "the hidden state of a recurrence: its memory"},
    {"W_h, W_in", "rnn-step", "循环网络的权重：乘旧的 h，乘输入 x", "weights of a recurrence: of the old h, of the input x"},
    {"h_A, h_B", "rnn-bottleneck", "句子 A 和句子 B 的 h", "the h of sentence A and of sentence B"},
    {"c", "lstm-memory", "LSTM 的传送带（细胞状态）", "the conveyor belt of the LSTM (its cell)"},
    {"f(t), i(t), o(t)", "lstm-memory", "LSTM 的遗忘门、输入门、输出门", "the forget, input and output gates of the LSTM"},
    {"n", "serial-steps", "句子有几个词", "the number of words in a sentence"},
    {"i", "serial-steps", "行：正在看的词（查询）", "the row: the word that looks (the query)"},
    {"z, Z", "serial-steps", "一个词的注意力输出；整句的", "the output of attention for a word; for all words"},
    {"j", "alignment", "列：被看的词（键）", "the column: the word looked at (the key)"},
    {"w", "alignment", "示意的强度，只在那一课用", "strengths made up for that lesson alone"},
    {"s, S", "alignment", "打分；整个矩阵（2014 年的论文写作 e）", "a score; all of them (e in the paper of 2014)"},
    {"A", "alignment", "注意力权重 softmax(S)（2014 年的论文写作 α）", "the weights of attention, softmax(S) (α in the paper of 2014)"},
    {"Σ_u, u", "alignment", "求和：u 走遍这一行，或走遍中间那个维度", "a sum: u runs over the row, or over the dimension in the middle"},
    {"v, V", "alignment", "值：一个词交出去的内容；整句的", "the value of a word, which it hands over; of all words"},
    {"q, Q", "projection", "查询：一个词要找什么；整句的", "the query of a word, what it looks for; of all words"},
    {"k, K", "projection", "键：一个词能被怎样找到；整句的", "the key of a word, what it is found by; of all words"},
    {"W_q, W_k", "projection", "由 x 得到 q、k 的权重", "the weights that make q and k of x"},
    {"L, R", "matmul", "乘号左边和右边的任意矩阵，只在那一课用", "any matrix on the left and on the right, in that lesson alone"},
    {"W_v", "qkv", "由 x 得到 v 的权重", "the weights that make v of x"},
    {"d_in", "qkv", "一个词的宽度（许多论文写作 d_model）", "the width of a word (d_model in many papers)"},
    {"d_k", "qkv", "q 和 k 的宽度：一个头的宽度", "the width of q and k: that of a head"},
    {"d_v", "qkv", "v 的宽度，常等于 d_k", "the width of v, often d_k"},
    {"H", "qkv", "头数", "the number of heads"},
    {"W_o", "qkv", "输出投影：把各个头的结果掺到一起", "the output projection: mixes what the heads have found"},
    {"Q_0, S_1", "heads", "下标是数字：第几个头的，从 0 数起", "a number as the index: of which head, from 0"},
    {"m", "softmax", "到现在为止最大的打分", "the largest score so far"},
    {"ℓ", "softmax", "exp(s − m) 的和", "the sum of exp(s − m)"},
    {"acc", "softmax", "exp(s − m)·v 的和；acc / ℓ 就是 z", "the sum of exp(s − m)·v; acc / ℓ is z"},
    {"Var", "scaling", "方差", "the variance"},
    {"B", "memory", "字节", "bytes"},
    {"PE", "positions", "位置编码", "the encoding of positions"},
    {"pos", "positions", "位置，从 0 数起", "the position, from 0"},
    {"2i", "positions", "第 i 对列中的第一列", "the first column of pair i"},
    {"d_h", "parameters", "LSTM 的 h 的宽度", "the width of the LSTM’s h"},
    {"W", "initialisation", "W_q、W_k、W_v 中的任何一个", "any of W_q, W_k and W_v"},
    {"σ", "initialisation", "W 的标准差", "the standard deviation of W"},
    {"dA, dS, dW_q", "initialisation", "损失对 A、S、W_q 的梯度", "the gradients of the loss with respect to A, S and W_q"},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
