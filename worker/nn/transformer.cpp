#include "worker/nn/transformer.h"

#include <cmath>

#include "common/check.h"
#include "worker/nn/kernels.h"

namespace prefgrid {
namespace {

at::Tensor make_rope_table(const ModelConfig& config) {
  const std::int64_t half = config.head_dim / 2;
  at::Tensor table = at::empty({config.max_tokens, config.head_dim}, at::kFloat);
  float* out = table.data_ptr<float>();
  for (std::int64_t position = 0; position < config.max_tokens; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double power = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
      const double angle = static_cast<double>(position) * std::pow(config.rope_theta, power);
      out[position * config.head_dim + i] = static_cast<float>(std::cos(angle));
      out[position * config.head_dim + half + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

// A live parameter that shares the memory of rows of a fused tensor.
at::Tensor rows_of(const at::Tensor& fused, std::int64_t first, std::int64_t count) {
  return fused.narrow(0, first, count).detach();
}

LayerWeights empty_layer(const ModelConfig& c) {
  LayerWeights layer;
  const std::int64_t queries = c.heads * c.head_dim;
  const std::int64_t keys = c.kv_heads * c.head_dim;
  layer.qkv = at::empty({queries + 2 * keys, c.d_model}, at::kFloat);
  layer.output = at::empty({c.d_model, queries}, at::kFloat);
  layer.gate_up = at::empty({2 * c.d_ff, c.d_model}, at::kFloat);
  layer.down = at::empty({c.d_model, c.d_ff}, at::kFloat);
  layer.attention_norm = at::ones({c.d_model}, at::kFloat);
  layer.mlp_norm = at::ones({c.d_model}, at::kFloat);
  layer.leaves = {rows_of(layer.qkv, 0, queries),
                  rows_of(layer.qkv, queries, keys),
                  rows_of(layer.qkv, queries + keys, keys),
                  layer.output.detach(),
                  rows_of(layer.gate_up, 0, c.d_ff),
                  rows_of(layer.gate_up, c.d_ff, c.d_ff),
                  layer.down.detach(),
                  layer.attention_norm.detach(),
                  layer.mlp_norm.detach()};
  return layer;
}

constexpr const char* leaf_names[] = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
    "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
    "mlp.down_proj",    "input_layernorm",  "post_attention_layernorm"};

void check_tokens(const at::Tensor& tokens, std::int64_t vocab_size) {
  PREFGRID_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.numel() > 0,
                 "tokens must be [batch, rows] int64");
  const std::int64_t* id = tokens.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    PREFGRID_CHECK(id[i] >= 0 && id[i] < vocab_size,
                   "token " + std::to_string(id[i]) + " of " + std::to_string(vocab_size));
  }
}

// Whether a run of equal numbers begins at `at`; without numbers all rows are one run.
bool run_begins(const at::Tensor& numbers, std::int64_t at, std::int64_t rows) {
  if (at % rows == 0) return true;
  if (!numbers.defined()) return false;
  const std::int64_t* number = numbers.data_ptr<std::int64_t>();
  return number[at] != number[at - 1];
}

// Positions and visible rows of packed texts, see train_forward.
RowPlan plan_rows(const at::Tensor& segments, const at::Tensor& branches, std::int64_t batch,
                  std::int64_t rows) {
  RowPlan plan;
  plan.positions = at::empty({batch * rows}, at::kLong);
  plan.visible = at::empty({batch * rows, 3}, at::kInt);
  std::int64_t* position = plan.positions.data_ptr<std::int64_t>();
  std::int32_t* visible = plan.visible.data_ptr<std::int32_t>();
  std::int32_t first = 0;  // of the segment
  std::int32_t trunk_end = 0;
  std::int32_t branch = 0;  // first row of the row's branch
  bool in_trunk = true;
  for (std::int64_t at = 0; at < batch * rows; ++at) {
    const auto row = static_cast<std::int32_t>(at % rows);
    if (run_begins(segments, at, rows)) {
      first = row;
      in_trunk = true;
    } else if (run_begins(branches, at, rows)) {
      branch = row;
      in_trunk = false;
    }
    if (in_trunk) {
      branch = row;
      trunk_end = row + 1;
    }
    const std::int32_t gap_begin = std::min(trunk_end, branch);
    const std::int32_t cells[3] = {first, gap_begin, branch};
    std::copy(cells, cells + 3, visible + 3 * at);
    position[at] = gap_begin - first + row - branch;
  }
  return plan;
}

// The first `keep` rows' keys and values go behind those in the cache.
void store_rows(const AttentionShape& shape, const at::Tensor& packed, std::int64_t keep,
                std::int64_t layer, KvCache& cache) {
  if (keep == 0) return;
  const at::Tensor rows = packed.view({shape.batch, shape.rows, -1, shape.head_dim})
                              .narrow(1, 0, keep)
                              .transpose(1, 2);  // [batch, heads + 2·kv_heads, keep, head_dim]
  const auto index = static_cast<std::size_t>(layer);
  cache.keys[index]
      .narrow(2, cache.length, keep)
      .copy_(rows.narrow(1, shape.heads, shape.kv_heads));
  cache.values[index]
      .narrow(2, cache.length, keep)
      .copy_(rows.narrow(1, shape.heads + shape.kv_heads, shape.kv_heads));
}

}  // namespace

Transformer::Transformer(const ModelConfig& config) : config_(config) {
  PREFGRID_CHECK(config.kv_heads > 0 && config.heads % config.kv_heads == 0 &&
                     config.head_dim > 0 && config.head_dim % 2 == 0 && config.vocab_size > 0 &&
                     config.d_model > 0 && config.d_ff > 0 && config.max_tokens > 0,
                 "an impossible model shape");
  const at::NoGradGuard no_gradients;
  embedding_ = at::empty({config.vocab_size, config.d_model}, at::kFloat);
  final_norm_ = at::ones({config.d_model}, at::kFloat);
  parameters_["model.embed_tokens.weight"] = embedding_;
  parameters_["model.norm.weight"] = final_norm_;
  head_ = embedding_;
  if (!config.tied_embeddings) {
    head_ = at::empty({config.vocab_size, config.d_model}, at::kFloat);
    parameters_["lm_head.weight"] = head_;
  }
  for (std::int64_t index = 0; index < config.layers; ++index) {
    layers_.push_back(empty_layer(config));
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    for (std::size_t leaf = 0; leaf < std::size(leaf_names); ++leaf) {
      parameters_[prefix + leaf_names[leaf] + ".weight"] = layers_.back().leaves[leaf];
    }
  }
  rope_table_ = make_rope_table(config);
}

void Transformer::set_requires_grad(bool on) {
  for (auto& [name, parameter] : parameters_) {
    parameter.set_requires_grad(on);
    if (!on) parameter.mutable_grad() = at::Tensor();
  }
}

at::Tensor Transformer::train_forward(const at::Tensor& tokens, const at::Tensor& segments,
                                      const at::Tensor& branches) const {
  const at::Tensor ids = tokens.contiguous();
  check_tokens(ids, config_.vocab_size);
  const std::int64_t batch = ids.size(0);
  const std::int64_t rows = ids.size(1);
  for (const at::Tensor& numbers : {segments, branches}) {
    PREFGRID_CHECK(
        !numbers.defined() || (numbers.sizes() == ids.sizes() && numbers.is_contiguous()),
        "segments and branches must have the shape of tokens");
  }
  RowPlan plan = plan_rows(segments, branches, batch, rows);
  PREFGRID_CHECK(plan.positions.max().item<std::int64_t>() < config_.max_tokens,
                 "a segment is longer than the context of " + std::to_string(config_.max_tokens));
  plan.shape = {batch, rows, config_.heads, config_.kv_heads, config_.head_dim};
  plan.epsilon = static_cast<float>(config_.rms_epsilon);
  plan.rope_table = rope_table_;
  at::Tensor x = at::embedding(embedding_, ids.view({-1}));
  for (const LayerWeights& layer : layers_) x = layer_forward(x, layer, plan);
  return norm_forward(x, final_norm_, plan.epsilon).view({batch, rows, config_.d_model});
}

KvCache Transformer::make_cache(std::int64_t batch, std::int64_t capacity) const {
  KvCache cache;
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const std::vector<std::int64_t> sizes{batch, config_.kv_heads, capacity, config_.head_dim};
    cache.keys.push_back(at::zeros(sizes, at::kFloat));
    cache.values.push_back(at::zeros(sizes, at::kFloat));
  }
  return cache;
}

at::Tensor Transformer::extend(const at::Tensor& tokens, const at::Tensor& positions,
                               const at::Tensor& mask, KvCache& cache, std::int64_t keep) const {
  const c10::InferenceMode inference;
  const at::Tensor ids = tokens.contiguous();
  check_tokens(ids, config_.vocab_size);
  const std::int64_t batch = ids.size(0);
  const std::int64_t rows = ids.size(1);
  PREFGRID_CHECK(positions.sizes() == ids.sizes() && positions.scalar_type() == at::kLong,
                 "positions must have the shape of tokens, int64");
  PREFGRID_CHECK(keep >= 0 && keep <= rows && cache.length + keep <= cache.capacity(),
                 "keeps " + std::to_string(keep) + " rows at " + std::to_string(cache.length) +
                     " of a cache of " + std::to_string(cache.capacity()));
  PREFGRID_CHECK(cache.keys[0].size(0) == batch, "the cache has another batch size");
  RowPlan plan;
  plan.shape = {batch, rows, config_.heads, config_.kv_heads, config_.head_dim};
  plan.epsilon = static_cast<float>(config_.rms_epsilon);
  plan.positions = positions.contiguous();
  plan.rope_table = rope_table_;
  PREFGRID_CHECK(plan.positions.min().item<std::int64_t>() >= 0 &&
                     plan.positions.max().item<std::int64_t>() < config_.max_tokens,
                 "a position outside the context of " + std::to_string(config_.max_tokens));
  at::Tensor full_mask;
  if (mask.defined()) {
    PREFGRID_CHECK(mask.dim() == 3 && mask.size(0) == batch && mask.size(1) == rows &&
                       mask.size(2) == cache.length + rows && mask.scalar_type() == at::kFloat,
                   "mask must be [batch, rows, cache.length + rows] fp32");
    full_mask = mask.contiguous();
  }
  at::Tensor x = embedding_.index_select(0, ids.view({-1}));
  for (std::int64_t index = 0; index < config_.layers; ++index) {
    const auto at = static_cast<std::size_t>(index);
    const CacheView view{cache.keys[at].data_ptr<float>(), cache.values[at].data_ptr<float>(),
                         cache.capacity(), cache.length};
    CachedLayer layer = layer_extend(x, layers_[at], plan, view,
                                     full_mask.defined() ? full_mask.data_ptr<float>() : nullptr);
    store_rows(plan.shape, layer.packed, keep, index, cache);
    x = std::move(layer.hidden);
  }
  cache.length += keep;
  at::Tensor hidden = at::empty_like(x);
  kernels::rms_norm(x.data_ptr<float>(), final_norm_.data_ptr<float>(), x.size(0), x.size(1),
                    plan.epsilon, hidden.data_ptr<float>(), nullptr);
  return hidden.view({batch, rows, config_.d_model});
}

at::Tensor Transformer::logits(const at::Tensor& hidden) const {
  if (at::GradMode::is_enabled() && (hidden.requires_grad() || head_.requires_grad())) {
    return at::matmul(hidden, head_.t());
  }
  const at::Tensor rows = hidden.detach().reshape({-1, config_.d_model}).contiguous();
  std::vector<std::int64_t> sizes = hidden.sizes().vec();
  sizes.back() = config_.vocab_size;
  return plain_linear(rows, head_).view(sizes);
}

}  // namespace prefgrid
