#pragma once

// For benchmarks: what fails ends the program, and standard error says why.

#include <hawser/status.h>

#include <utility>

template <typename T>
T must(hawser::Result<T> result) {
  if (!result) hawser::abort_on(result.error());
  return *std::move(result);
}

inline void must(const hawser::Status& status) {
  if (!status.ok()) hawser::abort_on(status);
}
