#include "coordinator/cli/usage.h"

#include <algorithm>

#include "common/text.h"

namespace prefgrid {
namespace {

std::string before(const std::string& text, const std::string& mark) {
  return text.substr(0, text.find(mark));
}
std::string after(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? text : text.substr(at + mark.size());
}

// The innermost command that was given: `prefgrid dataset show`.
const CLI::App& command_of(const CLI::App& app, std::string& name) {
  const auto given = app.get_subcommands();
  if (given.empty()) return app;
  name += " " + given.front()->get_name();
  return command_of(*given.front(), name);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// No command where one must stand: a wrong word, or none.
std::string missing_command(const CLI::App& command, const std::vector<std::string>& words) {
  const std::vector<std::string> known = command_names(command);
  const auto name = std::find_if(words.rbegin(), words.rend(), [&](const std::string& word) {
    return word == command.get_name();
  });
  const auto word = std::find_if(name.base(), words.end(),
                                 [](const std::string& w) { return !w.starts_with("-"); });
  if (word == words.end()) return "say what to do: " + listed(known);
  const std::string guess = did_you_mean(*word, known);
  return "unknown verb " + quoted(*word, 60) +
         (guess.empty() ? "; there are " + listed(known) : guess);
}

std::string unknown_argument(const CLI::App& command, const std::string& message) {
  // The library lists what is left in any order: an option there explains the words around it.
  const std::vector<std::string> left = split(after(message, "expected: "), ' ');
  const auto dashed = std::find_if(left.begin(), left.end(),
                                   [](const std::string& w) { return w.starts_with("-"); });
  const std::string word = dashed == left.end() ? left.front() : *dashed;
  if (!word.starts_with("-")) return "unexpected argument " + quoted(word, 60);
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return "unknown option " + quoted(word, 60) + did_you_mean(before(word, "="), known);
}

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

std::string problem_of(const CLI::App& command, const CLI::ParseError& error,
                       const std::vector<std::string>& words) {
  const std::string text = error.what();
  if (is<CLI::RequiredError>(error)) {
    if (text == "A subcommand is required") return missing_command(command, words);
    return before(text, " is required") + " is missing";
  }
  if (is<CLI::ExtrasError>(error)) return unknown_argument(command, text);
  if (is<CLI::ArgumentMismatch>(error)) return before(text, ":") + " needs a value";
  if (is<CLI::ExcludesError>(error)) {
    return before(text, " excludes ") + " and " + after(text, " excludes ") + " exclude each other";
  }
  if (is<CLI::ConversionError>(error)) {
    const std::string what = after(text, "Could not convert: ");
    return before(what, " = ") + " takes a number, not " + quoted(after(what, " = "), 60);
  }
  return text;
}

}  // namespace

std::string usage_problem(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words) {
  std::string name = "prefgrid";
  const CLI::App& command = command_of(app, name);
  const std::string problem = problem_of(command, error, words);
  return problem + (problem.ends_with("?") ? " See `" : "; see `") + name + " --help`";
}

}  // namespace prefgrid
