#pragma once

// ParamReader: a backend's string parameters as typed values, with defaults, ranges and errors that say what to write.
//
//   ParamReader read("tcp", given);
//   options.lanes = read.count("lanes", 4, {.min = 1, .max = 64});
//   options.buffer = read.size("buffer", 1 << 20, {.min = 4096});
//   options.zero_copy = read.choice("zero_copy", ZeroCopy::kAuto, kZeroCopyNames);
//   HAWSER_TRY(read.finish());      // all wrong values in one error; unknown keys become warnings
//   params_ = read.in_force();      // every parameter read, defaults included, in one canonical spelling
//   warnings_ = read.warnings();
//
// A read never fails by itself: a wrong value is noted for finish(), and the default is returned. Keys match whatever
// their case. A parameter is read once.
//
// Thread rule: one thread at a time. Lifetime: holds copies; nothing of `given` is kept.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/backends.h>
#include <hawser/status.h>
#include <hawser/time.h>

#include "base/check.h"

namespace hawser::backend {

/// Both ends are allowed values.
struct CountBounds {
  std::uint64_t min = 0;
  std::uint64_t max = UINT64_MAX;
};
struct DurationBounds {
  Duration min = Duration::zero();
  Duration max = Duration::max();
};

/// One word that a parameter may be, and what it means.
template <typename T>
struct Choice {
  std::string_view word;
  T value;
};

class ParamReader {
 public:
  /// `backend` is named in errors.
  ParamReader(std::string_view backend, const Params& given);

  std::uint64_t count(std::string_view name, std::uint64_t fallback, CountBounds bounds = {});
  std::uint64_t size(std::string_view name, std::uint64_t fallback, CountBounds bounds = {});
  Duration duration(std::string_view name, Duration fallback, DurationBounds bounds = {});
  bool flag(std::string_view name, bool fallback);
  std::string text(std::string_view name, std::string_view fallback);
  /// `fallback` must be among the choices.
  template <typename T>
  T choice(std::string_view name, T fallback, std::span<const Choice<T>> choices);
  template <typename T, std::size_t kCount>
  T choice(std::string_view name, T fallback, const Choice<T> (&choices)[kCount]) {
    return choice(name, fallback, std::span<const Choice<T>>(choices));
  }

  /// After the last read: kInvalid with every wrong value, or good. Keys that nobody read become warnings.
  Status finish();
  const Params& in_force() const { return in_force_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  template <typename T>
  struct Form;  ///< How a type is parsed and written.

  /// The given text, or nothing when the default is to be used.
  std::optional<std::string> take(std::string_view name);
  template <typename T>
  T number(std::string_view name, T fallback, T min, T max, const Form<T>& form);
  void reject(std::string_view name, std::string_view value, std::string_view form);
  std::size_t choose(std::string_view name, std::size_t fallback, std::span<const std::string_view> words);

  std::string backend_;
  Params left_;  ///< Given and not read yet; keys in lower case.
  Params in_force_;
  std::vector<std::string> errors_;
  std::vector<std::string> warnings_;
};

template <typename T>
T ParamReader::choice(std::string_view name, T fallback, std::span<const Choice<T>> choices) {
  std::vector<std::string_view> words;
  std::size_t chosen = choices.size();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    words.push_back(choices[i].word);
    if (choices[i].value == fallback && chosen == choices.size()) chosen = i;
  }
  HAWSER_ASSERT(chosen < choices.size(), "the default is none of the choices");
  return choices[choose(name, chosen, words)].value;
}

}  // namespace hawser::backend
