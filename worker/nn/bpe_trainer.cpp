#include "worker/nn/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "common/check.h"

namespace prefgrid {
namespace {

using Pair = std::uint64_t;  // left << 32 | right

Pair make_pair(std::int32_t left, std::int32_t right) {
  return static_cast<Pair>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}
std::int32_t left_of(Pair pair) {
  return static_cast<std::int32_t>(pair >> 32);
}
std::int32_t right_of(Pair pair) {
  return static_cast<std::int32_t>(pair & 0xFFFFFFFFU);
}

struct Word {
  std::vector<std::int32_t> tokens;
  std::int64_t count = 0;
};

class Trainer {
 public:
  Trainer(const std::unordered_map<std::string, std::int64_t>& words) : queue_(Worse{this}) {
    for (int byte = 0; byte < 256; ++byte) add_token(std::string(1, static_cast<char>(byte)));
    words_.reserve(words.size());
    for (const auto& [text, count] : words) {
      Word word{{}, count};
      for (const char byte : text) word.tokens.push_back(static_cast<unsigned char>(byte));
      words_.push_back(std::move(word));
    }
    for (std::size_t index = 0; index < words_.size(); ++index) {
      const Word& word = words_[index];
      for (std::size_t at = 0; at + 1 < word.tokens.size(); ++at) {
        change(make_pair(word.tokens[at], word.tokens[at + 1]), word.count, index);
      }
    }
    for (const auto& [pair, state] : pairs_) queue_.push({state.count, pair});
  }

  BpeVocabulary run(std::size_t size) {
    while (vocabulary_.tokens.size() < size) {
      const Pair best = pop_best();
      if (best == none) break;
      merge(best);
    }
    return std::move(vocabulary_);
  }

 private:
  static constexpr Pair none = ~Pair{0};
  struct PairState {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // that hold it, or held it: may repeat
  };
  struct Candidate {
    std::int64_t count;  // when it was queued; checked against the truth when popped
    Pair pair;
  };
  struct Worse {
    const Trainer* trainer;
    bool operator()(const Candidate& a, const Candidate& b) const {
      if (a.count != b.count) return a.count < b.count;
      return trainer->bytes_before(b.pair, a.pair);
    }
  };

  bool bytes_before(Pair a, Pair b) const {
    const auto& tokens = vocabulary_.tokens;
    const int order = tokens[left_of(a)].compare(tokens[left_of(b)]);
    if (order != 0) return order < 0;
    return tokens[right_of(a)] < tokens[right_of(b)];
  }
  std::int32_t add_token(const std::string& bytes) {
    const auto next = static_cast<std::int32_t>(vocabulary_.tokens.size());
    const auto [place, added] = ids_.emplace(bytes, next);
    if (added) vocabulary_.tokens.push_back(bytes);
    return place->second;  // two merges may spell the same token
  }
  void change(Pair pair, std::int64_t by, std::size_t word) {
    PairState& state = pairs_[pair];
    state.count += by;
    if (by > 0 && (state.words.empty() || state.words.back() != word)) state.words.push_back(word);
  }
  Pair pop_best() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.pair);
      const std::int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count < 2) continue;
      if (count == top.count) return top.pair;
      queue_.push({count, top.pair});
    }
    return none;
  }

  void merge(Pair pair) {
    const std::int32_t left = left_of(pair);
    const std::int32_t right = right_of(pair);
    const std::int32_t result = add_token(vocabulary_.tokens[left] + vocabulary_.tokens[right]);
    // A pair may come back: "abc" merged from a+bc meets what followed "abc" merged from ab+c.
    if (merged_.insert(pair).second) vocabulary_.merges.push_back({left, right, result});
    std::vector<std::size_t> places = std::move(pairs_[pair].words);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    std::vector<Pair> grown;
    for (const std::size_t index : places) merge_in_word(index, pair, result, grown);
    pairs_.erase(pair);
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const Pair other : grown) {
      if (const auto found = pairs_.find(other); found != pairs_.end()) {
        queue_.push({found->second.count, other});
      }
    }
  }

  // Takes the word's pairs out of the counts, merges, and puts the new ones in: words are short.
  void merge_in_word(std::size_t index, Pair pair, std::int32_t result, std::vector<Pair>& grown) {
    Word& word = words_[index];
    std::vector<std::int32_t> merged;
    merged.reserve(word.tokens.size());
    for (std::size_t at = 0; at < word.tokens.size(); ++at) {
      const bool here =
          at + 1 < word.tokens.size() && make_pair(word.tokens[at], word.tokens[at + 1]) == pair;
      merged.push_back(here ? result : word.tokens[at]);
      if (here) ++at;
    }
    if (merged.size() == word.tokens.size()) return;
    for (std::size_t at = 0; at + 1 < word.tokens.size(); ++at) {
      change(make_pair(word.tokens[at], word.tokens[at + 1]), -word.count, index);
    }
    word.tokens = std::move(merged);
    for (std::size_t at = 0; at + 1 < word.tokens.size(); ++at) {
      const Pair made = make_pair(word.tokens[at], word.tokens[at + 1]);
      change(made, word.count, index);
      if (word.tokens[at] == result || word.tokens[at + 1] == result) grown.push_back(made);
    }
  }

  BpeVocabulary vocabulary_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_set<Pair> merged_;
  std::vector<Word> words_;
  std::unordered_map<Pair, PairState> pairs_;
  std::priority_queue<Candidate, std::vector<Candidate>, Worse> queue_;
};

}  // namespace

BpeVocabulary train_bpe(const std::unordered_map<std::string, std::int64_t>& words,
                        std::size_t size) {
  PREFGRID_CHECK(size >= 256, "a vocabulary of " + std::to_string(size) + " lacks bytes");
  return Trainer(words).run(size);
}

}  // namespace prefgrid
