#pragma once

// Fields of a status page (agent/status_teller.h), read so that a page of another version shows less and breaks
// nothing.
//
// Thread rule: pure functions. Lifetime: views into the page's text.

#include <cstdint>
#include <optional>
#include <string>

#include <hawser/time.h>
#include <nlohmann/json.hpp>

#include "base/shown.h"

namespace hawser::cli {

using Fields = nlohmann::json;  // A page is read into this kind. Commands print the kind Json.

inline std::uint64_t number(const Fields& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}
inline std::string text(const Fields& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? base::shown(at->get<std::string>()) : std::string();
}
inline const Fields& rows(const Fields& json, const char* key) {
  static const Fields none = Fields::array();
  const auto at = json.find(key);
  return at != json.end() && at->is_array() ? *at : none;
}
inline std::optional<Instant> instant(const Fields& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_integer()) return std::nullopt;
  return Instant::from_ns(at->get<std::int64_t>());
}
/// By what a row says in `key`.
inline const Fields* find_row(const Fields& all, const char* key, const std::string& value) {
  for (const Fields& each : all) {
    if (text(each, key) == value) return &each;
  }
  return nullptr;
}

}  // namespace hawser::cli
