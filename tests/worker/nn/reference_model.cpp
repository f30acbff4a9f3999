#include "tests/worker/nn/reference_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace prefgrid {
namespace {

using Row = std::vector<double>;

class Reference {
 public:
  explicit Reference(const Transformer& model) : model_(model), config_(model.config()) {}

  std::vector<Row> hidden(const ReferenceInput& input) const {
    std::vector<Row> rows;
    for (const std::int64_t token : input.tokens) rows.push_back(embedding(token));
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      attend(prefix, input, rows);
      for (Row& row : rows) feed_forward(prefix, row);
    }
    for (Row& row : rows) row = norm("model.norm", row);
    return rows;
  }
  Row logits(const Row& hidden) const {
    return linear(config_.tied_embeddings ? "model.embed_tokens" : "lm_head", hidden);
  }

 private:
  double weight(const at::Tensor& tensor, std::int64_t row, std::int64_t column) const {
    return tensor.data_ptr<float>()[row * tensor.size(1) + column];
  }
  const at::Tensor& parameter(const std::string& name) const {
    return model_.parameters().at(name + ".weight");
  }
  Row embedding(std::int64_t token) const {
    Row row;
    for (std::int64_t i = 0; i < config_.d_model; ++i) {
      row.push_back(weight(parameter("model.embed_tokens"), token, i));
    }
    return row;
  }
  Row linear(const std::string& name, const Row& x) const {
    const at::Tensor& w = parameter(name);
    Row y(static_cast<std::size_t>(w.size(0)), 0.0);
    for (std::int64_t out = 0; out < w.size(0); ++out) {
      for (std::int64_t in = 0; in < w.size(1); ++in) y[out] += weight(w, out, in) * x[in];
    }
    return y;
  }
  Row norm(const std::string& name, const Row& x) const {
    double mean = 0;
    for (const double value : x) mean += value * value / static_cast<double>(x.size());
    Row y = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = x[i] / std::sqrt(mean + config_.rms_epsilon) * parameter(name).data_ptr<float>()[i];
    }
    return y;
  }
  // Element i and element i + half as a complex number, turned by position · theta^(-2i/dim).
  void rotate(Row& x, std::int64_t heads, std::int64_t position) const {
    const std::int64_t half = config_.head_dim / 2;
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(position) /
            std::pow(config_.rope_theta,
                     static_cast<double>(2 * i) / static_cast<double>(config_.head_dim));
        double& a = x[head * config_.head_dim + i];
        double& b = x[head * config_.head_dim + i + half];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
  }
  void attend(const std::string& prefix, const ReferenceInput& input,
              std::vector<Row>& rows) const {
    std::vector<Row> queries, keys, values;
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const Row x = norm(prefix + "input_layernorm", rows[at]);
      queries.push_back(linear(prefix + "self_attn.q_proj", x));
      keys.push_back(linear(prefix + "self_attn.k_proj", x));
      values.push_back(linear(prefix + "self_attn.v_proj", x));
      rotate(queries.back(), config_.heads, input.positions[at]);
      rotate(keys.back(), config_.kv_heads, input.positions[at]);
    }
    for (std::size_t at = 0; at < rows.size(); ++at) {
      Row mixed(static_cast<std::size_t>(config_.heads * config_.head_dim), 0.0);
      for (std::int64_t head = 0; head < config_.heads; ++head) {
        mix_head(head, queries[at], keys, values, input.visible[at], mixed);
      }
      const Row out = linear(prefix + "self_attn.o_proj", mixed);
      for (std::size_t i = 0; i < out.size(); ++i) rows[at][i] += out[i];
    }
  }
  void mix_head(std::int64_t head, const Row& query, const std::vector<Row>& keys,
                const std::vector<Row>& values, const std::vector<std::size_t>& visible,
                Row& mixed) const {
    const std::int64_t dim = config_.head_dim;
    const std::int64_t shared = head / (config_.heads / config_.kv_heads);
    std::vector<double> share;
    for (const std::size_t other : visible) {
      double score = 0;
      for (std::int64_t i = 0; i < dim; ++i) {
        score += query[head * dim + i] * keys[other][shared * dim + i];
      }
      share.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
    }
    const double total = std::accumulate(share.begin(), share.end(), 0.0);
    for (std::size_t seen = 0; seen < visible.size(); ++seen) {
      for (std::int64_t i = 0; i < dim; ++i) {
        mixed[head * dim + i] += share[seen] / total * values[visible[seen]][shared * dim + i];
      }
    }
  }
  void feed_forward(const std::string& prefix, Row& row) const {
    const Row x = norm(prefix + "post_attention_layernorm", row);
    const Row gate = linear(prefix + "mlp.gate_proj", x);
    Row product = linear(prefix + "mlp.up_proj", x);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      product[i] *= gate[i] / (1 + std::exp(-gate[i]));
    }
    const Row out = linear(prefix + "mlp.down_proj", product);
    for (std::size_t i = 0; i < out.size(); ++i) row[i] += out[i];
  }

  const Transformer& model_;
  const ModelConfig& config_;
};

}  // namespace

ReferenceInput causal_input(const std::vector<std::int64_t>& tokens) {
  ReferenceInput input{tokens, {}, {}};
  std::vector<std::size_t> seen;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    input.positions.push_back(static_cast<std::int64_t>(at));
    seen.push_back(at);
    input.visible.push_back(seen);
  }
  return input;
}

std::vector<std::vector<double>> reference_hidden(const Transformer& model,
                                                  const ReferenceInput& input) {
  return Reference(model).hidden(input);
}

std::vector<std::vector<double>> reference_logits(const Transformer& model,
                                                  const ReferenceInput& input) {
  const Reference reference(model);
  std::vector<std::vector<double>> logits;
  for (const Row& row : reference.hidden(input)) logits.push_back(reference.logits(row));
  return logits;
}

}  // namespace prefgrid
