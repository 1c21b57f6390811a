/* A plan made once and run many times, from C++: grouped heads, a causal mask, the log-sum-exp beside the output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <clattn/clattn.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Destroy {
    void operator()(clattn_context *context) const { clattn_context_destroy(context); }
    void operator()(clattn_plan *plan) const { clattn_plan_destroy(plan); }
};
using Context = std::unique_ptr<clattn_context, Destroy>;
using Plan = std::unique_ptr<clattn_plan, Destroy>;

// The library's texts are copied out: ask for the length, then for the text.
template <class Owner> std::string text_of(std::size_t (*get)(Owner *, char *, std::size_t), Owner *owner) {
    std::string text(get(owner, nullptr, 0) + 1, '\0');
    get(owner, &text[0], text.size());
    text.pop_back();
    return text;
}

void check(clattn_status status, clattn_context *context) {
    if (status != CLATTN_OK)
        throw std::runtime_error(std::string(clattn_status_name(status)) + ": " + text_of(clattn_context_error, context));
}

Context open_context() {
    char error[512] = "";
    clattn_context_options options = CLATTN_CONTEXT_OPTIONS_INIT;
    options.error = error;
    options.error_size = sizeof error;
    clattn_context *context = nullptr;
    if (clattn_context_create(&options, &context) != CLATTN_OK) throw std::runtime_error(error);
    return Context(context);
}

Plan plan_attention(clattn_context *context) {
    const std::int64_t batch = 1, heads_q = 4, heads_kv = 2, len_q = 3, len_kv = 5, dim = 8;
    clattn_attention_desc desc = CLATTN_ATTENTION_DESC_INIT;
    desc.q = clattn_tensor_bhld(CLATTN_F32, batch, heads_q, len_q, dim);
    desc.k = desc.v = clattn_tensor_bhld(CLATTN_F32, batch, heads_kv, len_kv, dim);
    desc.out = desc.q;
    desc.lse = clattn_tensor_bhld(CLATTN_F32, batch, heads_q, len_q, 1);
    desc.options.causal = 1;
    desc.options.align = CLATTN_ALIGN_BOTTOM_RIGHT;
    clattn_plan *plan = nullptr;
    check(clattn_plan_create_attention(context, &desc, nullptr, &plan), context);
    return Plan(plan);
}

std::vector<float> storage(const Plan &plan, clattn_tensor_id id) {
    const clattn_tensor tensor = clattn_plan_tensor(plan.get(), id);
    return std::vector<float>(tensor.size[0] * tensor.size[1] * tensor.size[2] * tensor.size[3], 1.0f);
}

} // namespace

int main() try {
    const Context context = open_context();
    const Plan plan = plan_attention(context.get());
    std::vector<float> q = storage(plan, CLATTN_TENSOR_Q), k = storage(plan, CLATTN_TENSOR_K),
                       v = storage(plan, CLATTN_TENSOR_V);
    std::vector<float> out = storage(plan, CLATTN_TENSOR_OUT), lse = storage(plan, CLATTN_TENSOR_LSE);
    const clattn_arg args[] = {{CLATTN_TENSOR_Q, q.data(), q.size() * sizeof(float)},
                               {CLATTN_TENSOR_K, k.data(), k.size() * sizeof(float)},
                               {CLATTN_TENSOR_V, v.data(), v.size() * sizeof(float)},
                               {CLATTN_TENSOR_OUT, out.data(), out.size() * sizeof(float)},
                               {CLATTN_TENSOR_LSE, lse.data(), lse.size() * sizeof(float)}};
    for (int run = 0; run < 3; run++) check(clattn_plan_run(plan.get(), args, 5), context.get());

    std::cout << text_of<const clattn_plan>(clattn_plan_explain, plan.get()) << "\n";
    std::cout << "out[0] = " << out[0] << ", lse of queries 0, 1, 2: " << lse[0] << " " << lse[1] << " " << lse[2] << "\n";
    return out[0] > 0.999f && out[0] < 1.001f && lse[0] < lse[1] && lse[1] < lse[2] ? 0 : 1;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
