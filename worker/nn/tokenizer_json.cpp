// A Tokenizer's file, as the Hugging Face `tokenizers` library writes and reads it: a BPE model
// over GPT-2's printable stand-ins for bytes, ByteLevel pre-tokenizer and decoder, two special
// tokens.
#include <array>
#include <set>

#include "common/files.h"
#include "common/text.h"
#include "worker/nn/json_file.h"
#include "worker/nn/tokenizer_impl.h"

namespace prefgrid {
namespace {

using Json = nlohmann::json;
constexpr std::size_t max_file_bytes = std::size_t{64} << 20;
constexpr std::size_t max_vocabulary = 1 << 20;

std::string utf8(unsigned code_point) {  // below U+0800: all that the byte alphabet needs
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// GPT-2's bytes_to_unicode: printable bytes stand for themselves, the others for U+0100 on.
struct ByteAlphabet {
  std::array<std::string, 256> letters;
  std::unordered_map<std::string, char> bytes;

  ByteAlphabet() {
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      letters[byte] = utf8(printable ? byte : next++);
      bytes.emplace(letters[byte], static_cast<char>(byte));
    }
  }
  std::string write(std::string_view token) const {
    std::string text;
    for (const char byte : token) text += letters[static_cast<unsigned char>(byte)];
    return text;
  }
  // False: a letter that stands for no byte.
  bool read(std::string_view text, std::string& token) const {
    while (!text.empty()) {
      const std::size_t length = (text[0] & 0x80) == 0 ? 1 : 2;
      const auto found = bytes.find(std::string(text.substr(0, length)));
      if (found == bytes.end()) return false;
      token += found->second;
      text.remove_prefix(found->first.size());
    }
    return true;
  }
};

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file.string()) {}

  Result<void> read(const Json& json, Tokenizer::Impl& impl) {
    PREFGRID_TRY(check_pipeline(json));
    PREFGRID_TRY(read_specials(json));
    PREFGRID_TRY(check_model(json));
    PREFGRID_TRY(read_vocabulary(json.at("model"), impl));
    PREFGRID_TRY(read_merges(json.at("model"), impl));
    if (!impl.finish()) return wrong("model.vocab", "not every single byte has a token");
    if (impl.begin < 0) return wrong("added_tokens", quoted(begin_text) + " is missing");
    if (impl.end < 0) return wrong("added_tokens", quoted(end_text) + " is missing");
    return {};
  }

 private:
  Error wrong(const std::string& field, const std::string& problem) const {
    return invalid_input(file_ + ": " + field + ": " + problem);
  }
  static std::string text_or(const Json& object, const char* field) {
    if (!object.is_object() || !object.contains(field) || !object.at(field).is_string()) return "";
    return object.at(field).get<std::string>();
  }
  static bool absent(const Json& object, const char* field) {
    return !object.contains(field) || object.at(field).is_null();
  }

  // Anything that would give other tokens than ours is refused, not ignored.
  Result<void> check_pipeline(const Json& json) const {
    if (!absent(json, "normalizer")) return wrong("normalizer", "must be null");
    for (const char* field : {"pre_tokenizer", "decoder"}) {
      if (absent(json, field)) return wrong(field, "is missing; \"ByteLevel\" is supported");
      const std::string type = text_or(json.at(field), "type");
      if (type != "ByteLevel") {
        return wrong(field, "\"ByteLevel\" is supported, not " + quoted(type, 60));
      }
    }
    const Json& cut = json.at("pre_tokenizer");
    if (!cut.contains("add_prefix_space") || cut.at("add_prefix_space") != false) {
      return wrong("pre_tokenizer.add_prefix_space", "must be false");
    }
    if (cut.contains("use_regex") && cut.at("use_regex") != true) {
      return wrong("pre_tokenizer.use_regex", "must be true");
    }
    return {};
  }

  Result<void> check_model(const Json& json) const {
    if (!json.contains("model") || !json.at("model").is_object()) {
      return wrong("model", "is missing or no object");
    }
    const Json& model = json.at("model");
    if (text_or(model, "type") != "BPE") return wrong("model.type", "must be \"BPE\"");
    for (const char* field : {"dropout", "unk_token"}) {
      if (!absent(model, field)) return wrong(std::string("model.") + field, "must be null");
    }
    for (const char* field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!absent(model, field) && model.at(field) != "") {
        return wrong(std::string("model.") + field, "must be empty");
      }
    }
    for (const char* field : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
      if (!absent(model, field) && model.at(field) != false) {
        return wrong(std::string("model.") + field, "must be false");
      }
    }
    return {};
  }

  Result<void> read_specials(const Json& json) {
    if (!json.contains("added_tokens") || !json.at("added_tokens").is_array()) {
      return wrong("added_tokens", "is missing or no list");
    }
    for (const Json& entry : json.at("added_tokens")) {
      const std::string content = text_or(entry, "content");
      if (content.empty()) return wrong("added_tokens", "an entry has no content");
      if (!entry.contains("id") || !entry.at("id").is_number_unsigned() ||
          entry.at("id").get<std::uint64_t>() >= max_vocabulary) {
        return wrong("added_tokens", quoted(content, 60) + " has no valid id");
      }
      if (!entry.contains("special") || entry.at("special") != true) {
        return wrong("added_tokens", quoted(content, 60) + " must have \"special\": true");
      }
      const auto id = entry.at("id").get<std::size_t>();
      if (!specials_.emplace(id, content).second || !special_texts_.insert(content).second) {
        return wrong("added_tokens", quoted(content, 60) + " stands twice, or its id does");
      }
    }
    return {};
  }

  Result<void> read_vocabulary(const Json& model, Tokenizer::Impl& impl) {
    if (!model.contains("vocab") || !model.at("vocab").is_object()) {
      return wrong("model.vocab", "is missing or no object");
    }
    std::map<std::size_t, std::string> by_id;
    for (const auto& [text, id] : model.at("vocab").items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= max_vocabulary) {
        return wrong("model.vocab", quoted(text, 60) + " has no valid id");
      }
      if (!by_id.emplace(id.get<std::size_t>(), text).second) {
        return wrong("model.vocab", "the id of " + quoted(text, 60) + " stands twice");
      }
    }
    for (const auto& [id, text] : specials_) {
      const auto [place, added] = by_id.emplace(id, text);
      if (!added && place->second != text) {
        return wrong("added_tokens", "the id of " + quoted(text, 60) + " is that of " +
                                         quoted(place->second, 60) + " in model.vocab");
      }
    }
    impl.tokens.resize(by_id.size());
    impl.specials.resize(by_id.size());
    for (const auto& [id, text] : by_id) {
      if (id >= by_id.size()) {
        return wrong("model.vocab", "the ids have gaps below " + std::to_string(id));
      }
      if (specials_.contains(id)) {
        impl.specials[id] = text;
      } else if (special_texts_.contains(text)) {
        return wrong("model.vocab", quoted(text, 60) + " has another id in added_tokens");
      } else if (text.empty() || !alphabet_.read(text, impl.tokens[id])) {
        return wrong("model.vocab", quoted(text, 60) + " is not made of the byte alphabet");
      } else {
        ids_.emplace(impl.tokens[id], static_cast<TokenId>(id));
      }
    }
    return {};
  }

  // "a b", or the newer ["a", "b"].
  bool split_merge(const Json& entry, std::string& left, std::string& right) const {
    if (entry.is_array()) {
      return entry.size() == 2 && entry[0].is_string() && entry[1].is_string() &&
             alphabet_.read(entry[0].get<std::string>(), left) &&
             alphabet_.read(entry[1].get<std::string>(), right);
    }
    if (!entry.is_string()) return false;
    const std::vector<std::string> parts = split(entry.get_ref<const std::string&>(), ' ');
    return parts.size() == 2 && alphabet_.read(parts[0], left) && alphabet_.read(parts[1], right);
  }

  Result<void> read_merges(const Json& model, Tokenizer::Impl& impl) {
    if (!model.contains("merges") || !model.at("merges").is_array()) {
      return wrong("model.merges", "is missing or no list");
    }
    std::set<std::uint64_t> seen;
    for (std::size_t rank = 0; rank < model.at("merges").size(); ++rank) {
      const Json& entry = model.at("merges")[rank];
      const std::string name = "model.merges[" + std::to_string(rank) + "]";
      std::string left;
      std::string right;
      if (!split_merge(entry, left, right)) return wrong(name, "is no pair of tokens");
      for (const std::string& token : {left, right, left + right}) {
        if (!ids_.contains(token)) {
          return wrong(name, "names a token that is not in the vocabulary: " + quoted(token, 60));
        }
      }
      const Tokenizer::Impl::MergePair pair{ids_.at(left), ids_.at(right)};
      if (!seen.insert(Tokenizer::Impl::key(pair.left, pair.right)).second) {
        return wrong(name, "stands twice");
      }
      impl.merge_order.push_back(pair);
    }
    return {};
  }

  std::string file_;
  ByteAlphabet alphabet_;
  std::map<std::size_t, std::string> specials_;
  std::set<std::string> special_texts_;
  std::unordered_map<std::string, TokenId> ids_;
};

Json byte_level() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", true}};
}

}  // namespace

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& tokenizer_json) {
  PREFGRID_ASSIGN(const Json json, read_json_object(tokenizer_json, max_file_bytes));
  Tokenizer tokenizer;
  PREFGRID_TRY(Reader(tokenizer_json).read(json, *tokenizer.impl_));
  return tokenizer;
}

Result<void> Tokenizer::save(const std::filesystem::path& tokenizer_json) const {
  const ByteAlphabet alphabet;
  Json added = Json::array();
  Json vocabulary = Json::object();
  for (std::size_t id = 0; id < impl_->tokens.size(); ++id) {
    const std::string& special = impl_->specials[id];
    vocabulary[special.empty() ? alphabet.write(impl_->tokens[id]) : special] = id;
    if (special.empty()) continue;
    added.push_back({{"id", id},
                     {"content", special},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json merges = Json::array();
  for (const auto& [left, right] : impl_->merge_order) {
    merges.push_back(alphabet.write(impl_->tokens[left]) + " " +
                     alphabet.write(impl_->tokens[right]));
  }
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", byte_level()},
                     {"post_processor", nullptr},
                     {"decoder", byte_level()},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"vocab", vocabulary},
                       {"merges", merges}}}};
  return write_file_atomic(tokenizer_json, json.dump(1, ' ') + "\n");
}

}  // namespace prefgrid
