// What is wrong with a command line, in one line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace prefgrid {

// "SPEC is missing; see `prefgrid run --help`". `words`: the command line after the program.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& words);

}  // namespace prefgrid
