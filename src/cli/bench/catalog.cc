#include "cli/bench/catalog.h"

#include <fmt/format.h>

namespace hawser::cli::bench {
namespace {

// The usual wildcards, by backtracking to the last star.
bool matches_one(std::string_view id, std::string_view pattern) {
  std::size_t at = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (at < id.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == id[at])) {
      ++at, ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = at;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool matches(std::string_view id, std::string_view patterns) {
  while (!patterns.empty()) {
    const std::size_t comma = patterns.find(',');
    if (matches_one(id, patterns.substr(0, comma))) return true;
    patterns = comma == std::string_view::npos ? std::string_view() : patterns.substr(comma + 1);
  }
  return false;
}

std::string size_id(std::uint64_t bytes) {
  if (bytes >= 1u << 20) return fmt::format("{}m", bytes >> 20);
  if (bytes >= 1u << 10) return fmt::format("{}k", bytes >> 10);
  return std::to_string(bytes);
}

std::vector<Row> all_rows(const BenchOptions& options) {
  std::vector<Row> rows;
  add_small_rows(rows);
  add_shm_rows(rows, options);
  add_consume_rows(rows);
  add_tcp_rows(rows, options);
  add_mixed_rows(rows);
  add_ucx_rows(rows);
  add_verbs_rows(rows);
  add_table_rows(rows);
  add_submit_rows(rows);
  add_idle_rows(rows);
  add_open_rows(rows);
  return rows;
}

}  // namespace hawser::cli::bench
