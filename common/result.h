// Errors as values. An expected outcome is a plain value; an operational failure (a bad file, a
// full disk, a peer that is gone) is a Result; a bug is a PREFGRID_CHECK (common/check.h).
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "common/check.h"

namespace prefgrid {

// A code exists only because some caller reacts differently to it; the text is for a person and
// says what, where (file, line, key) and what to do next.
enum class ErrorCode {
  invalid_input,  // the user's spec, data or arguments; exit code 2, nothing was written
  not_found,      // an id or a file that is not there
  conflict,       // held by somebody else, or made by another version
  io,             // the operating system refused
  out_of_space,   // the disk is full: wait, do not give up
  unavailable,    // a peer did not answer
  internal,       // anything else
  out_of_memory
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

inline Error invalid_input(std::string message) {
  return {ErrorCode::invalid_input, std::move(message)};
}

// A T or an Error. Reading the wrong side aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    PREFGRID_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  T& checked() {
    PREFGRID_CHECK(ok(), "value() of a Result that holds an error: " + std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT: implicit

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const {
    PREFGRID_CHECK(!ok_, "error() of a Result that holds a value");
    return error_;
  }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace prefgrid

// Returns the error of `expression` (a Result) from the enclosing function, if it has one.
#define PREFGRID_TRY(expression)                                                     \
  do {                                                                               \
    if (auto try_result = (expression); !try_result.ok()) return try_result.error(); \
  } while (false)

// `variable` = the value, or return the error. NOLINTBEGIN(bugprone-macro-parentheses)
#define PREFGRID_ASSIGN(variable, expression) \
  PREFGRID_ASSIGN_IMPL(PREFGRID_JOIN(assign_result_, __LINE__), variable, expression)
#define PREFGRID_ASSIGN_IMPL(result, variable, expression) \
  auto result = (expression);                              \
  if (!result.ok()) return result.error();                 \
  variable = *std::move(result)
#define PREFGRID_JOIN(a, b) PREFGRID_JOIN_IMPL(a, b)
#define PREFGRID_JOIN_IMPL(a, b) a##b  // NOLINTEND(bugprone-macro-parentheses)
