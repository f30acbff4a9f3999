#include "worker/nn/tokenizer.h"

#include <algorithm>
#include <queue>

#include "common/ids.h"
#include "common/sha256.h"
#include "worker/nn/bpe_trainer.h"
#include "worker/nn/tokenizer_impl.h"

namespace prefgrid {
namespace {

constexpr std::size_t scan_limit = 48;  // pieces up to here: the simple scan beats the heap

struct Node {
  TokenId token;
  std::int32_t previous;
  std::int32_t next;
};

struct Step {
  std::int32_t rank;
  std::int32_t position;  // of the left node
  TokenId left;           // as they were when it was queued
  TokenId right;
  bool operator>(const Step& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

// Lowest rank first, then leftmost. Both ways below give the same tokens.
template <class Merges>
void merge_by_scan(std::vector<TokenId>& tokens, const Merges& find) {
  while (tokens.size() > 1) {
    std::int32_t best_rank = -1;
    std::size_t best = 0;
    TokenId result = 0;
    for (std::size_t at = 0; at + 1 < tokens.size(); ++at) {
      const auto* merge = find(tokens[at], tokens[at + 1]);
      if (merge != nullptr && (best_rank < 0 || merge->rank < best_rank)) {
        best_rank = merge->rank;
        best = at;
        result = merge->result;
      }
    }
    if (best_rank < 0) return;
    tokens[best] = result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

template <class Merges>
void merge_by_heap(std::vector<TokenId>& tokens, const Merges& find) {
  const auto size = static_cast<std::int32_t>(tokens.size());
  std::vector<Node> nodes(tokens.size());
  for (std::int32_t at = 0; at < size; ++at) {
    nodes[at] = {tokens[at], at - 1, at + 1 < size ? at + 1 : -1};
  }
  std::priority_queue<Step, std::vector<Step>, std::greater<>> queue;
  const auto propose = [&](std::int32_t at) {
    if (at < 0 || nodes[at].next < 0) return;
    const TokenId right = nodes[nodes[at].next].token;
    if (const auto* merge = find(nodes[at].token, right)) {
      queue.push({merge->rank, at, nodes[at].token, right});
    }
  };
  for (std::int32_t at = 0; at < size; ++at) propose(at);
  while (!queue.empty()) {
    const Step step = queue.top();
    queue.pop();
    Node& node = nodes[step.position];
    if (node.token != step.left || node.next < 0 || nodes[node.next].token != step.right) continue;
    node.token = find(step.left, step.right)->result;
    Node& gone = nodes[node.next];
    gone.token = -1;
    node.next = gone.next;
    if (node.next >= 0) nodes[node.next].previous = step.position;
    propose(node.previous);
    propose(step.position);
  }
  tokens.clear();
  for (std::int32_t at = 0; at >= 0; at = nodes[at].next) tokens.push_back(nodes[at].token);
}

}  // namespace

Tokenizer::Tokenizer() : impl_(std::make_unique<Impl>()) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

bool Tokenizer::Impl::finish() {
  std::fill(std::begin(byte_tokens), std::end(byte_tokens), -1);
  Sha256 hash;
  const auto add = [&hash](std::string_view text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (tokens[id].size() == 1) byte_tokens[static_cast<unsigned char>(tokens[id][0])] = token;
    if (specials[id] == begin_text) begin = token;
    if (specials[id] == end_text) end = token;
    add(specials[id]);
    add(tokens[id]);
  }
  std::unordered_map<std::string_view, TokenId> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (specials[id].empty()) ids.emplace(tokens[id], static_cast<TokenId>(id));
  }
  for (std::size_t rank = 0; rank < merge_order.size(); ++rank) {
    const auto [left, right] = merge_order[rank];
    const TokenId result = ids.at(tokens[left] + tokens[right]);
    merges.emplace(key(left, right), Merge{static_cast<std::int32_t>(rank), result});
    add(std::to_string(left) + " " + std::to_string(right));
  }
  static constexpr char digits[] = "0123456789abcdef";
  for (const std::uint8_t byte : hash.finish()) {
    fingerprint += digits[byte >> 4];
    fingerprint += digits[byte & 15];
  }
  return std::find(std::begin(byte_tokens), std::end(byte_tokens), -1) == std::end(byte_tokens);
}

void Tokenizer::Impl::encode_piece(std::string_view piece, std::vector<TokenId>& out) const {
  std::vector<TokenId> pending;
  pending.reserve(piece.size());
  for (const char byte : piece) pending.push_back(byte_tokens[static_cast<unsigned char>(byte)]);
  const auto find = [this](TokenId left, TokenId right) -> const Merge* {
    const auto found = merges.find(key(left, right));
    return found == merges.end() ? nullptr : &found->second;
  };
  if (pending.size() <= scan_limit) {
    merge_by_scan(pending, find);
  } else {
    merge_by_heap(pending, find);
  }
  out.insert(out.end(), pending.begin(), pending.end());
}

Result<Tokenizer> Tokenizer::train(std::span<const std::string> texts, std::int64_t vocab_size) {
  if (vocab_size < 258 || vocab_size > 1 << 20) {
    return invalid_input("vocab_size must lie in 258 (the bytes and two special tokens) .. " +
                         std::to_string(1 << 20) + ", is " + std::to_string(vocab_size));
  }
  Tokenizer tokenizer;
  Impl& impl = *tokenizer.impl_;
  std::unordered_map<std::string, std::int64_t> words;
  for (const std::string& text : texts) {
    for (const std::string_view piece : impl.pretokenizer.split(text)) ++words[std::string(piece)];
  }
  BpeVocabulary learnt = train_bpe(words, static_cast<std::size_t>(vocab_size) - 2);
  impl.tokens = {"", ""};
  impl.specials = {std::string(begin_text), std::string(end_text)};
  for (std::string& bytes : learnt.tokens) impl.tokens.push_back(std::move(bytes));
  impl.specials.resize(impl.tokens.size());
  for (const BpeMerge& merge : learnt.merges) {
    impl.merge_order.push_back({merge.left + 2, merge.right + 2});
  }
  PREFGRID_CHECK(impl.finish(), "a byte has no token");
  return tokenizer;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size() / 3);
  for (const std::string_view piece : impl_->pretokenizer.split(text)) {
    impl_->encode_piece(piece, tokens);
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  std::string text;
  for (const TokenId token : tokens) text += bytes(token);
  return text;
}

std::string_view Tokenizer::bytes(TokenId token) const {
  PREFGRID_CHECK(token >= 0 && static_cast<std::size_t>(token) < impl_->tokens.size(),
                 "token " + std::to_string(token) + " of " + std::to_string(impl_->tokens.size()));
  return impl_->tokens[static_cast<std::size_t>(token)];
}

std::int64_t Tokenizer::vocab_size() const {
  return static_cast<std::int64_t>(impl_->tokens.size());
}
TokenId Tokenizer::begin_token() const {
  return impl_->begin;
}
TokenId Tokenizer::end_token() const {
  return impl_->end;
}
const std::string& Tokenizer::fingerprint() const {
  return impl_->fingerprint;
}

}  // namespace prefgrid
