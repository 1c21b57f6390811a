/* Attention does not see order; a picture of sines that tells it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute.h"
#include "courses.h"
#include "sentence.h"

enum { WIDTH = 16, LENGTH = 32, FIGURE_WIDTH = 8, FIGURE_LENGTH = 4, WORDS = 3, SEED = 42 };

/* PE(pos, 2i) = sin(pos / 10000^(2i / dim)), PE(pos, 2i + 1) = cos of the same  (Vaswani et al. 2017, 3.5). No operator makes
 * sines: rotary embedding is given its own. */
static mat encode(lesson *lesson, int64_t length, int64_t dim) {
    mat encoding = mat_new(&lesson->arena, length, dim);
    for (int64_t p = 0; p < length; p++) {
        for (int64_t d = 0; d < dim; d++) {
            const double angle = (double)p * exp((double)(d - d % 2) * -log(10000) / (double)dim);
            encoding.at[p * dim + d] = (float)(d % 2 == 0 ? sin(angle) : cos(angle));
        }
    }
    return encoding;
}

static double row_distance(mat m, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < m.cols; d++) sum += pow(mat_at(m, i, d) - mat_at(m, j, d), 2);
    return sqrt(sum);
}

/* Which row is the most like a row. */
static int64_t nearest_row(mat m, int64_t row) {
    int64_t nearest = row > 0 ? row - 1 : row + 1; /* a neighbour, unless another is nearer */
    for (int64_t i = 0; i < m.rows; i++)
        if (i != row && row_distance(m, i, row) < row_distance(m, nearest, row)) nearest = i;
    return nearest;
}

/* How alike the rows near the first are; from others it is the same. */
static void sum_up_encoding(doc *doc, mat encoding) {
    enum { MOST_ROWS = 256 };
    const int64_t rows = encoding.rows < MOST_ROWS ? encoding.rows : MOST_ROWS;
    int64_t astray = 0;
    while (astray < rows && rows > 1 && llabs(nearest_row(encoding, astray) - astray) == 1) astray++;
    if (rows < 2)
        doc_summary(doc, "只有一个位置。", "There is a single position.");
    else if (astray < rows) {
        const int64_t other = nearest_row(encoding, astray), beside = astray + 1 < rows ? astray + 1 : astray - 1;
        doc_summary(doc, "维数少，最像的不一定是邻居：离第 %lld 行最近的是第 %lld 行，相距 %.2f；离第 %lld 行却有 %.2f。",
                    "In so few dimensions the most alike need not be neighbours: nearest to row %lld is row %lld, %.2f away, "
                    "while row %lld is %.2f away.",
                    (long long)astray, (long long)other, row_distance(encoding, astray, other), (long long)beside,
                    row_distance(encoding, astray, beside));
    } else
        doc_summary(doc, "每一行最像它的邻居：第 0 行离第 1 行 %.2f，离最后一行 %.2f。",
                    "Each row is most like a neighbour: row 0 is %.2f from row 1 and %.2f from the last.",
                    row_distance(encoding, 0, 1), row_distance(encoding, 0, encoding.rows - 1));
}

static void show_encoding(lesson *lesson, int64_t length, int64_t dim) {
    doc *doc = &lesson->doc;
    const mat encoding = encode(lesson, length, dim), small = encode(lesson, FIGURE_LENGTH, FIGURE_WIDTH);
    doc_step(doc, "每个位置一行，每一对列一个波长：左边快，右边慢。",
             "A row for each position, a wavelength for each pair of columns: fast on the left, slow on the right.");
    doc_matrix *map = lesson_show(lesson, "encoding",
                                  doc_text(doc, "位置编码，%lld 个位置，宽 %lld", "The encoding of %lld positions, %lld wide",
                                           (long long)length, (long long)dim),
                                  "PE", DOC_ROLE_PLAIN, encoding, NULL, NULL);
    lesson_scale(map, -1, 1);
    map->row_axis = doc_text(doc, "位置", "position");
    map->col_axis = doc_text(doc, "维", "dimension");
    sum_up_encoding(doc, encoding);
    figures_number(&lesson->figures, "positional_encoding/len", FIGURE_LENGTH);
    figures_number(&lesson->figures, "positional_encoding/dim", FIGURE_WIDTH);
    figures_mat(&lesson->figures, "positional_encoding/value", small);
}

/* ---- shuffled ------------------------------------------------------------------------------------------------------ */

static mat reversed(lesson *lesson, mat m) {
    mat r = mat_new(&lesson->arena, m.rows, m.cols);
    for (int64_t i = 0; i < m.rows; i++)
        memcpy(r.at + i * m.cols, m.at + (m.rows - 1 - i) * m.cols, (size_t)m.cols * sizeof *m.at);
    return r;
}

typedef struct weights {
    mat w_q, w_k, w_v;
} weights;

static lesson_attention attend(lesson *lesson, const weights *w, mat x) {
    lesson_attention a = {0};
    lesson_project(lesson, x, w->w_q, w->w_k, w->w_v, &a.q, &a.k, &a.v);
    lesson_attend(lesson, &a);
    return a;
}

static double largest_difference(mat a, mat b) {
    double largest = 0;
    for (int64_t i = 0; i < a.rows * a.cols; i++) {
        const double difference = fabs(a.at[i] - b.at[i]);
        if (difference > largest) largest = difference; /* by fmax gcc 12 breaks off on aarch64 */
    }
    return largest;
}

static void show_map(lesson *lesson, const char *id, const char *title, mat w, const char *const *labels,
                     const char *const *words) {
    doc_matrix *map = lesson_show(lesson, id, title, "A", DOC_ROLE_WEIGHTS, w, labels, words);
    lesson_scale(map, 0, 1);
    map->row_axis = doc_text(&lesson->doc, "谁在看", "who looks");
    map->col_axis = doc_text(&lesson->doc, "看谁", "at whom");
}

static void show_shuffled(lesson *lesson, lesson_words words, uint32_t seed) {
    doc *doc = &lesson->doc;
    arena *arena = &lesson->arena;
    numpy_random random;
    numpy_seed(&random, seed);
    const mat x = mat_randn(arena, &random, words.count, WIDTH, 1), pe = encode(lesson, words.count, WIDTH);
    const weights w = {mat_randn(arena, &random, WIDTH, WIDTH, 0.3), mat_randn(arena, &random, WIDTH, WIDTH, 0.3),
                       mat_randn(arena, &random, WIDTH, WIDTH, 0.3)};
    const char **backwards = ARENA_NEW(arena, const char *, words.count),
               **labels = ARENA_NEW(arena, const char *, words.count);
    for (int64_t i = 0; i < words.count; i++) {
        backwards[i] = words.at[words.count - 1 - i];
        labels[i] = words.labels[words.count - 1 - i];
    }
    const lesson_attention plain = attend(lesson, &w, x), plain_back = attend(lesson, &w, reversed(lesson, x));
    const lesson_attention placed = attend(lesson, &w, mat_sum(arena, x, pe)),
                           placed_back = attend(lesson, &w, mat_sum(arena, reversed(lesson, x), pe));
    const double without = largest_difference(plain.out, reversed(lesson, plain_back.out)),
                 with = largest_difference(placed.out, reversed(lesson, placed_back.out));

    doc_step(doc, "没有位置：把句子倒过来，每个词得到的输出一点没变。",
             "Without positions: turn the sentence round, and every word gets the very same output.");
    show_map(lesson, "plain", doc_text(doc, "正着读", "Forwards"), plain.weights, words.labels, words.at);
    show_map(lesson, "plain-back", doc_text(doc, "倒着读", "Backwards"), plain_back.weights, labels, backwards);
    doc_summary(doc, "同一个词的输出最多相差 %s，只是舍入：热图只是行列跟着换了位置。",
                "The outputs of a word differ by %s at most, which is rounding: the map only has its rows and columns moved "
                "along.",
                lesson_tiny(lesson, without));
    doc_step(doc, "把位置编码加到词向量上，再来一次。", "Add the encoding to the vectors of the words, and once more.");
    show_map(lesson, "placed", doc_text(doc, "正着读，有位置", "Forwards, with positions"), placed.weights, words.labels,
             words.at);
    show_map(lesson, "placed-back", doc_text(doc, "倒着读，有位置", "Backwards, with positions"), placed_back.weights, labels,
             backwards);
    if (words.count > 1)
        doc_summary(doc, "现在同一个词的输出最多相差 %.2f：它知道自己站在哪儿了。",
                    "Now the outputs of a word differ by up to %.2f: it knows where it stands.", with);
    else
        doc_summary(doc, "只有一个词，倒过来还是它自己，输出相差 %.2f。",
                    "A single word is the same backwards: its outputs differ by %.2f.", with);
    figures_number(&lesson->figures, "positions/difference_without", without);
    figures_number(&lesson->figures, "positions/difference_with", with);
}

void lesson_positions(lesson *lesson) {
    static const lesson_word own[WORDS] = {{"dog", "狗", NULL}, {"bites", "咬", NULL}, {"man", "人", NULL}};
    doc *doc = &lesson->doc;
    const lesson_words words = lesson_take_words(lesson, own, WORDS);
    const uint32_t seed = (uint32_t)lesson_integer(lesson->parameters.seed, SEED);
    const int64_t dim = lesson_integer(lesson->parameters.dim, WIDTH);
    int64_t lengths[CLI_MAX_INTEGERS];
    const size_t count = lesson_lengths(lesson, (const int64_t[]){LENGTH}, 1, lengths);
    doc_say(
        doc,
        "没有掩码的注意力是一个集合里的互相打量：换了词序，没有哪个点积会变。“狗咬人”和“人咬狗”，它分不出来。（因果掩码会泄露"
        "次序：第一个词只看得见自己，见%s。）",
        "Attention without a mask looks around in a set: no dot product changes with the order of the words. “Dog bites "
        "man” and “man bites dog” are the same to it. (A causal mask gives the order away: the first word sees itself "
        "alone, see %s.)",
        lesson_refer(lesson, "mask"));
    lesson_introduce_words(lesson, words, "狗咬人", "dog bites man");
    if (words.own)
        lesson_say_words(lesson, words, seed);
    else
        doc_say(doc, "词向量和 W_q、W_k、W_v 随机，种子 %u。", "The vectors, W_q, W_k and W_v are drawn with seed %u.", seed);
    doc_formula(doc, "PE(pos, 2i) = sin(pos / 10000^(2i/d_in))");
    doc_formula(doc, "PE(pos, 2i+1) = cos(pos / 10000^(2i/d_in))");
    doc_say(
        doc,
        "pos 是位置，从 0 数起；d_in 是词向量的宽度；2i 和 2i+1 是第 i 对列。正弦和余弦由本课自己算，程序库没有这个算子；"
        "热图和差别由程序库算。",
        "pos is the position, counted from 0; d_in is the width of a word; 2i and 2i+1 are the pair of columns i. Sines and "
        "cosines are computed by the lesson itself, the library has no operator for them; maps and differences are the "
        "library’s.");
    doc_ask(doc,
            doc_text(doc, "把句子倒过来，没有位置编码，每个词的输出会变吗？",
                     "Turn the sentence round, without an encoding: does the output of any word change?"),
            doc_text(doc, "不会，除了相加次序带来的舍入。", "No, beyond the rounding of sums in another order."));
    show_encoding(lesson, lengths[count - 1], dim);
    show_shuffled(lesson, words, seed);
    doc_correct(doc, doc_text(doc, "循环网络也要位置编码。", "A recurrent network needs an encoding of positions, too."),
                doc_text(doc,
                         "它一个词一个词地读，次序就在读的过程里。没有掩码的注意力用并行换掉了次序，只好另外告诉它；有因果掩码"
                         "时，不告诉它也能学到一些。",
                         "It reads word by word, and order is in the reading. Attention without a mask traded order for "
                         "parallelism, and has "
                         "to be told; under a causal mask it can learn some of it untold."));
}
