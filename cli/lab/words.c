/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <string.h>

const lab_translation lab_translations[] = {
    /* verdicts */
    {"correct", "正确"},
    {"build error", "编译错误"},
    {"wrong contract", "不合约定"},
    {"out of bounds", "越界"},
    {"race", "数据竞争"},
    {"hang", "不结束"},
    {"crash", "崩溃"},
    {"wrong", "结果错误"},
    {"unstable", "结果不稳定"},
    {"undecided", "没有结论"},
    /* stages */
    {"start", "启动"},
    {"isolation", "隔离"},
    {"build", "编译"},
    {"contract", "约定"},
    {"one work-group", "一个工作组"},
    {"shapes", "形状表"},
    {"time", "计时"},
    {"ok", "通过"},
    {"full", "完全"},
    {"partial: %s", "部分：%s"},
    {"%d of %d", "%d / %d"},
    {"left out", "略过"},
    {"not installed", "没有安装"},
    {"no result: too slow, or a kernel that it does not know", "没有结果：太慢，或者是它不认识的内核"},
    /* what happened */
    {"the process that ran it was ended by signal %d (%s)", "运行它的进程被信号 %d（%s）终止"},
    {"the process that ran it is gone", "运行它的进程不见了"},
    {"reads or writes memory that is far from any of its buffers", "读写了离所有缓冲区都很远的内存"},
    {"writes element %lld of %s, which has %llu", "写了第 %lld 个元素，而 %s 只有 %llu 个"},
    {"reads element %lld of %s, which has %llu", "读了第 %lld 个元素，而 %s 只有 %llu 个"},
    {"the device refuses: %s", "设备拒绝：%s"},
    {"is still running after %g s", "%g 秒后仍在运行"},
    {"does not finish building in %g s", "%g 秒内没有编译完"},
    {"stopped", "已停止"},
    {"%zu of %zu elements are wrong", "错误的元素：%zu / %zu"},
    {"%s; wanted is\n%s", "%s；应为\n%s"},
    {"there is no kernel called %s", "没有名为 %s 的内核"},
    {"%s has %d arguments instead of %zu", "%s 有 %d 个参数，应有 %zu 个"},
    {"reqd_work_group_size asks for %d x %d, and the work-group is %d x %d: see \"// lab: local\"",
     "reqd_work_group_size 要求 %d x %d，而工作组是 %d x %d：见 “// lab: local”"},
    {"argument %zu, %s, is a %s %s instead of a %s %s", "第 %zu 个参数 %s 是 %s %s，应为 %s %s"},
    {"wants \"// lab: local %s tile %s\", a work-group of at most %d and a tile of at most %d a dimension",
     "应写成 “// lab: local %s tile %s”，工作组不超过 %d，块的每一维不超过 %d"},
    {"writes %zu elements before %s begins", "在前面 %zu 个元素处写了 %s"},
    {"writes element %zu of %s, which has %zu", "写了第 %zu 个元素，而 %s 只有 %zu 个"},
    {"writes into its input %s", "写了输入 %s"},
    {"a timed launch left elements unwritten", "计时的一次启动有元素没有写到"},
    {"writes outside of a buffer", "在缓冲区之外写"},
    {"reads outside of a buffer", "在缓冲区之外读"},
    {"work-items of a group wait at different barriers, or some at none", "同一组的工作项等在不同的屏障，或者有的不等"},
    {"work-items use the same memory at once, without a barrier between", "工作项同时使用同一块内存，中间没有屏障"},
    {"uses memory that nothing has written", "使用了从未写过的内存"},
    /* causes */
    {"a missing barrier", "缺少屏障"},
    {"a race: the same input gives another output from launch to launch", "数据竞争：同样的输入，每次启动的输出不同"},
    {"a race: right at the first launch, wrong at the second with the same input", "数据竞争：同样的输入，第一次对，第二次错"},
    {"these are the results of an earlier launch, on other inputs: replayed", "这是之前一次启动、别的输入的结果：重放"},
    {"a tail: all is right up to column %d, where the last, incomplete part of %d begins",
     "尾巴：第 %d 列之前都对，从那里开始是最后一个不完整的块（块宽 %d）"},
    {"a tail: all is right up to row %d, where the last, incomplete part of %d begins",
     "尾巴：第 %d 行之前都对，从那里开始是最后一个不完整的块（块高 %d）"},
    {"every element is zero", "所有元素都是零"},
    {"a missing maximum: NaN with large scores only; subtract the row's maximum before exp",
     "没有减去最大值：只在分数很大时出现 NaN；exp 之前先减去该行的最大值"},
    {"NaN with masked scores only: -INFINITY minus -INFINITY, or 0 times INFINITY",
     "只在有遮罩时出现 NaN：-INFINITY 减 -INFINITY，或 0 乘 INFINITY"},
    {"nothing is written", "什么也没有写"},
    {"what is wrong was never written", "错误的元素从未写过"},
    /* warnings */
    {"line %d includes a file: isolation is partial, so it may be any that you can read\n",
     "第 %d 行包含了一个文件：隔离只是部分的，所以可能是你能读的任何文件\n"},
    {"line %d is assembly: isolation is partial, so it may write any file that you can write\n",
     "第 %d 行是汇编：隔离只是部分的，所以它可能写你能写的任何文件\n"},
    {"oclgrind: line %d %s\n", "oclgrind：第 %d 行%s\n"},
    {"the library's kernel is not timed: %s\n", "本库的内核没有计时：%s\n"},
    /* the report */
    {"verdict: %s", "结论：%s"},
    {"  line %d: %s\n", "  第 %d 行：%s\n"},
    {"  likely cause: %s\n", "  可能的原因：%s\n"},
    {"  the same inputs again: --seed %llu\n", "  再用同样的输入：--seed %llu\n"},
    {"  warning: %.*s\n", "  注意：%.*s\n"},
    {"  first wrong element: row %d, column %d; expected %.7g, got %.7g\n",
     "  第一个错误的元素：第 %d 行第 %d 列；应为 %.7g，得到 %.7g\n"},
    {"  first wrong element: row %d, column %d; expected %.7g, never written\n",
     "  第一个错误的元素：第 %d 行第 %d 列；应为 %.7g，从未写过\n"},
    {"  where (. right, # wrong, n NaN, ? never written):\n", "  位置（. 对，# 错，n NaN，? 从未写过）：\n"},
    {"  time for %s, median of %d: yours %.3g ms", "  用时（%s，%d 次的中位数）：你的 %.3g 毫秒"},
    {", ours %.3g ms", "，本库 %.3g 毫秒"},
    {"  not believed: one launch took %.3g ms, and this device takes at least %.3g ms for the arithmetic and the bytes of the step\n",
     "  不可信：有一次启动只用了 %.3g 毫秒，而这一步的算术与字节，这台设备至少要 %.3g 毫秒\n"},
    {"  yours %.*f %% of peak", "  你的达到峰值的 %.*f %%"},
    {", ours %.*f %%", "，本库 %.*f %%"},
    {"  (the peak is that of memory; above it, the data come from a cache)\n", "  （峰值是内存的；超过它说明数据来自缓存）\n"},
    {"  the kernel printed:\n", "  内核打印了：\n"},
    {"watching %s\n\n", "等待 %s 保存\n\n"},
    {", large scores", "，大分数"},
    {", masked scores", "，有遮罩的分数"},
};
const size_t lab_translation_count = sizeof lab_translations / sizeof *lab_translations;

static bool speaks_chinese;

void lab_speak_chinese(bool is_chinese) {
    speaks_chinese = is_chinese;
}

const char *lab_words(const char *english) {
    for (size_t i = 0; i < lab_translation_count && speaks_chinese; i++)
        if (strcmp(lab_translations[i].english, english) == 0) return lab_translations[i].chinese;
    return english;
}
