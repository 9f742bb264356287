#pragma once

// must: what a test cannot go on without. Throws what the error says; a GoogleTest case fails by it, a program ends.
//
// Thread rule: any thread.

#include <stdexcept>
#include <utility>

#include <hawser/status.h>

namespace hawser {

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}

inline void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.to_string());
}

}  // namespace hawser
