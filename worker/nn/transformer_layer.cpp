#include "worker/nn/transformer_layer.h"

#include "worker/nn/kernels.h"
#include "worker/nn/product.h"

namespace prefgrid {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t few_rows = 4;  // up to here a product is bound by reading the weights

float* data(const at::Tensor& tensor) {
  return tensor.data_ptr<float>();
}

at::Tensor like(const at::Tensor& x, std::int64_t width) {
  return at::empty({x.size(0), width}, x.options().requires_grad(false));
}

// dx = dy · w.
at::Tensor input_gradient(const at::Tensor& dy, const at::Tensor& w) {
  at::Tensor dx = like(dy, w.size(1));
  multiply({false, false, dy.size(0), w.size(1), w.size(0)}, data(dy), w.size(0), data(w),
           w.size(1), data(dx), w.size(1));
  return dx;
}
// dw = dyᵀ · x.
at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x) {
  at::Tensor dw = at::empty({dy.size(1), x.size(1)}, x.options().requires_grad(false));
  multiply({true, false, dy.size(1), x.size(1), x.size(0)}, data(dy), dy.size(1), data(x),
           x.size(1), data(dw), x.size(1));
  return dw;
}
// x += y · wᵀ, the residual sum without a pass of its own.
void add_linear(const at::Tensor& y, const at::Tensor& w, const at::Tensor& x) {
  multiply({false, true, y.size(0), w.size(0), w.size(1), 1, 1}, data(y), w.size(1), data(w),
           w.size(1), data(x), w.size(0));
}

struct Normed {
  at::Tensor value;
  at::Tensor inverse;
};
Normed normalise(const at::Tensor& x, const at::Tensor& gain, float epsilon) {
  Normed result{like(x, x.size(1)), like(x, 1)};
  kernels::rms_norm(data(x), data(gain), x.size(0), x.size(1), epsilon, data(result.value),
                    data(result.inverse));
  return result;
}
at::Tensor normalise_again(const at::Tensor& x, const at::Tensor& gain, float epsilon) {
  return normalise(x, gain, epsilon).value;
}

const Visible* visible_rows(const RowPlan& plan) {
  static_assert(sizeof(Visible) == 3 * sizeof(std::int32_t));
  return reinterpret_cast<const Visible*>(plan.visible.data_ptr<std::int32_t>());
}

void rotate(const RowPlan& plan, bool inverse, const at::Tensor& packed) {
  const AttentionShape& shape = plan.shape;
  const kernels::RopeRows rows{packed.size(0), shape.packed_width(), shape.heads + shape.kv_heads,
                               shape.head_dim};
  kernels::rope(rows, plan.positions.data_ptr<std::int64_t>(), data(plan.rope_table), inverse,
                data(packed));
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  at::Tensor out = like(gate_up, gate_up.size(1) / 2);
  kernels::swiglu(data(gate_up), gate_up.size(0), out.size(1), data(out));
  return out;
}

class LayerFunction : public torch::autograd::Function<LayerFunction> {
 public:
  // The leaves are there for autograd; the fused tensors in `weights` are the same memory.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const LayerWeights* weights,
                            const RowPlan* plan) {
    const AttentionShape& shape = plan->shape;
    const Normed first = normalise(x, weights->attention_norm, plan->epsilon);
    const at::Tensor packed = plain_linear(first.value, weights->qkv);
    rotate(*plan, false, packed);
    const at::Tensor attended = like(x, shape.query_width());
    const at::Tensor log_sums = like(x, shape.heads);
    causal_attention(shape, data(packed), visible_rows(*plan), data(attended), data(log_sums));
    const at::Tensor middle = x.detach().clone();
    add_linear(attended, weights->output, middle);
    const Normed second = normalise(middle, weights->mlp_norm, plan->epsilon);
    const at::Tensor gate_up = plain_linear(second.value, weights->gate_up);
    const at::Tensor out = middle.clone();
    add_linear(swiglu(gate_up), weights->down, out);
    context->save_for_backward({x, first.inverse, packed, attended, log_sums, middle,
                                second.inverse, gate_up, plan->positions, plan->visible,
                                plan->rope_table, weights->qkv, weights->output, weights->gate_up,
                                weights->down, weights->attention_norm, weights->mlp_norm});
    context->saved_data["shape"] = std::vector<std::int64_t>{shape.batch, shape.rows, shape.heads,
                                                             shape.kv_heads, shape.head_dim};
    context->saved_data["epsilon"] = static_cast<double>(plan->epsilon);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Saved saved = restore(context);
    const at::Tensor dout = gradients[0].contiguous();
    variable_list result(13);
    const at::Tensor dmiddle = mlp_backward(saved, dout, result);
    result[0] = attention_backward(saved, dmiddle, result);
    return result;
  }

 private:
  struct Saved {
    at::Tensor x, first_inverse, attended, log_sums, middle, second_inverse, gate_up, packed;
    LayerWeights weights;
    RowPlan plan;
  };

  static Saved restore(AutogradContext* context) {
    const variable_list v = context->get_saved_variables();
    const auto shape = context->saved_data["shape"].toIntVector();
    Saved saved;
    saved.x = v[0];
    saved.first_inverse = v[1];
    saved.packed = v[2];
    saved.attended = v[3];
    saved.log_sums = v[4];
    saved.middle = v[5];
    saved.second_inverse = v[6];
    saved.gate_up = v[7];
    saved.plan = {{shape[0], shape[1], shape[2], shape[3], shape[4]},
                  static_cast<float>(context->saved_data["epsilon"].toDouble()),
                  v[8],
                  v[9],
                  v[10]};
    saved.weights = {v[11], v[12], v[13], v[14], v[15], v[16], {}};
    return saved;
  }

  // result: slots 5..7 and 9 are filled. Returns the gradient at the middle of the layer.
  static at::Tensor mlp_backward(const Saved& saved, const at::Tensor& dout,
                                 variable_list& result) {
    const LayerWeights& w = saved.weights;
    const std::int64_t d_ff = w.down.size(1);
    result[7] = weight_gradient(dout, swiglu(saved.gate_up));
    const at::Tensor dproduct = input_gradient(dout, w.down);
    const at::Tensor dgate_up = like(dout, 2 * d_ff);
    kernels::swiglu_backward(data(dproduct), data(saved.gate_up), dout.size(0), d_ff,
                             data(dgate_up));
    const at::Tensor normed = normalise_again(saved.middle, w.mlp_norm, saved.plan.epsilon);
    const at::Tensor dgate_up_weight = weight_gradient(dgate_up, normed);
    result[5] = dgate_up_weight.narrow(0, 0, d_ff);
    result[6] = dgate_up_weight.narrow(0, d_ff, d_ff);
    const at::Tensor dnormed = input_gradient(dgate_up, w.gate_up);
    const at::Tensor dmiddle = dout.clone();
    result[9] = at::zeros_like(w.mlp_norm);
    kernels::rms_norm_backward(data(dnormed), data(saved.middle), data(w.mlp_norm),
                               data(saved.second_inverse), dout.size(0), dout.size(1),
                               data(dmiddle), data(result[9]));
    return dmiddle;
  }

  // result: slots 1..4 and 8 are filled. Returns the gradient at the layer's input.
  static at::Tensor attention_backward(const Saved& saved, const at::Tensor& dmiddle,
                                       variable_list& result) {
    const LayerWeights& w = saved.weights;
    const AttentionShape& shape = saved.plan.shape;
    result[4] = weight_gradient(dmiddle, saved.attended);
    const at::Tensor dattended = input_gradient(dmiddle, w.output);
    const at::Tensor dpacked = like(dmiddle, shape.packed_width());
    causal_attention_backward(shape, data(saved.packed), visible_rows(saved.plan),
                              data(saved.attended), data(saved.log_sums), data(dattended),
                              data(dpacked));
    rotate(saved.plan, true, dpacked);
    const at::Tensor normed = normalise_again(saved.x, w.attention_norm, saved.plan.epsilon);
    const at::Tensor dqkv = weight_gradient(dpacked, normed);
    const std::int64_t queries = shape.query_width();
    const std::int64_t keys = shape.kv_heads * shape.head_dim;
    result[1] = dqkv.narrow(0, 0, queries);
    result[2] = dqkv.narrow(0, queries, keys);
    result[3] = dqkv.narrow(0, queries + keys, keys);
    const at::Tensor dnormed = input_gradient(dpacked, w.qkv);
    const at::Tensor dx = dmiddle.clone();
    result[8] = at::zeros_like(w.attention_norm);
    kernels::rms_norm_backward(data(dnormed), data(saved.x), data(w.attention_norm),
                               data(saved.first_inverse), dx.size(0), dx.size(1), data(dx),
                               data(result[8]));
    return dx;
  }
};

class NormFunction : public torch::autograd::Function<NormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gain,
                            double epsilon) {
    Normed normed = normalise(x, gain, static_cast<float>(epsilon));
    context->save_for_backward({x, gain, normed.inverse});
    return normed.value;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor dy = gradients[0].contiguous();
    at::Tensor dx = at::zeros_like(x);
    at::Tensor dgain = at::zeros_like(saved[1]);
    kernels::rms_norm_backward(data(dy), data(x), data(saved[1]), data(saved[2]), x.size(0),
                               x.size(1), data(dx), data(dgain));
    return {dx, dgain, at::Tensor()};
  }
};

}  // namespace

at::Tensor plain_linear(const at::Tensor& x, const at::Tensor& w) {
  at::Tensor y = like(x, w.size(0));
  if (x.size(0) <= few_rows) {
    kernels::few_rows_linear(data(x), data(w), x.size(0), w.size(0), w.size(1), data(y));
  } else {
    multiply({false, true, x.size(0), w.size(0), w.size(1)}, data(x), w.size(1), data(w), w.size(1),
             data(y), w.size(0));
  }
  return y;
}

at::Tensor layer_forward(const at::Tensor& x, const LayerWeights& weights, const RowPlan& plan) {
  const std::vector<at::Tensor>& l = weights.leaves;
  return LayerFunction::apply(x, l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7], l[8], &weights,
                              &plan);
}

at::Tensor norm_forward(const at::Tensor& x, const at::Tensor& gain, float epsilon) {
  return NormFunction::apply(x, gain, static_cast<double>(epsilon));
}

CachedLayer layer_extend(const at::Tensor& x, const LayerWeights& weights, const RowPlan& plan,
                         const CacheView& cache, const float* mask) {
  const at::Tensor first = normalise_again(x, weights.attention_norm, plan.epsilon);
  const at::Tensor packed = plain_linear(first, weights.qkv);
  rotate(plan, false, packed);
  const at::Tensor attended = like(x, plan.shape.query_width());
  cached_attention(plan.shape, data(packed), cache, mask, data(attended));
  const at::Tensor hidden = x.clone();
  const auto add_product = [&hidden](const at::Tensor& y, const at::Tensor& w) {
    if (y.size(0) > few_rows) return add_linear(y, w, hidden);
    kernels::add(data(plain_linear(y, w)), hidden.numel(), data(hidden));
  };
  add_product(attended, weights.output);
  const at::Tensor second = normalise_again(hidden, weights.mlp_norm, plan.epsilon);
  add_product(swiglu(plain_linear(second, weights.gate_up)), weights.down);
  return {hidden, packed};
}

}  // namespace prefgrid
