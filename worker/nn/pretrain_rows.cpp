#include "worker/nn/pretrain_rows.h"

#include <algorithm>
#include <numeric>

namespace prefgrid {
namespace {

std::vector<std::size_t> random_order(std::size_t count, RandomStream& random) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace

TokenItem token_item(const Tokenizer& tokenizer, std::string_view prompt,
                     std::string_view completion, std::int64_t max_prompt_tokens) {
  TokenItem item;
  const std::vector<TokenId> head = tokenizer.encode(prompt);
  const std::vector<TokenId> tail = tokenizer.encode(completion);
  const std::size_t kept = std::min(head.size(), static_cast<std::size_t>(max_prompt_tokens));
  item.tokens.push_back(tokenizer.begin_token());
  item.tokens.insert(item.tokens.end(), head.end() - static_cast<std::ptrdiff_t>(kept), head.end());
  item.completion_at = item.tokens.size();
  item.tokens.insert(item.tokens.end(), tail.begin(), tail.end());
  item.tokens.push_back(tokenizer.end_token());
  return item;
}

bool RowPacker::add(const TokenItem& item, bool new_segment) {
  const auto length = static_cast<std::int64_t>(item.tokens.size()) - 1;  // predictions
  if (length > options_.row_tokens) return false;
  if (static_cast<std::int64_t>(open_.inputs.size()) + length > options_.row_tokens) close_row();
  // The end token of the item before is an input too, where the segment goes on: it predicts the
  // next begin token, which counts nothing.
  const bool joined = !new_segment && !open_.inputs.empty() &&
                      static_cast<std::int64_t>(open_.inputs.size()) + length < options_.row_tokens;
  if (joined) {
    open_.inputs.push_back(open_.targets.back());
    open_.targets.push_back(item.tokens[0]);
    open_.segments.push_back(segment_);
    open_.weights.push_back(0);
  } else {
    ++segment_;
  }
  for (std::size_t at = 0; at + 1 < item.tokens.size(); ++at) {
    open_.inputs.push_back(item.tokens[at]);
    open_.targets.push_back(item.tokens[at + 1]);
    open_.segments.push_back(segment_);
    open_.weights.push_back(at + 1 >= item.completion_at ? 1.0F : options_.prompt_weight);
  }
  return true;
}

void RowPacker::close_row() {
  if (open_.inputs.empty()) return;
  const auto length = static_cast<std::size_t>(options_.row_tokens);
  open_.inputs.resize(length, 0);
  open_.targets.resize(length, 0);
  open_.segments.resize(length, -1);
  open_.weights.resize(length, 0.0F);
  rows_.push_back(std::move(open_));
  open_ = {};
}

std::vector<TokenRow> RowPacker::finish() {
  close_row();
  return std::move(rows_);
}

std::vector<TokenRow> pack_epoch(const std::vector<std::vector<TokenItem>>& authors,
                                 const PackOptions& options, RandomStream& random) {
  // Runs of one author's items first; then the runs in random order, so that a large author's rows
  // do not come all at once.
  struct Run {
    std::vector<const TokenItem*> items;
  };
  std::vector<Run> runs;
  for (const std::vector<TokenItem>& items : authors) {
    std::uint64_t room = 0;
    for (const std::size_t index : random_order(items.size(), random)) {
      if (room == 0) {
        runs.emplace_back();
        room = std::uint64_t{1} << random.below(5);
      }
      runs.back().items.push_back(&items[index]);
      --room;
    }
  }
  RowPacker packer(options);
  for (const std::size_t index : random_order(runs.size(), random)) {
    bool first = true;
    for (const TokenItem* item : runs[index].items) {
      packer.add(*item, first);
      first = false;
    }
  }
  return packer.finish();
}

}  // namespace prefgrid
