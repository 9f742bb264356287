#pragma once

// All rows of the bench, in the order in which they run: rows that share a stage stand together.

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/figure.h"

namespace hawser::cli::bench {

std::vector<Row> all_rows(const BenchOptions& options);
/// True where `id` matches a pattern with * and ?. Several patterns may be given, separated by commas.
bool matches(std::string_view id, std::string_view patterns);

void add_shm_rows(std::vector<Row>& rows, const BenchOptions& options);
void add_consume_rows(std::vector<Row>& rows);
void add_small_rows(std::vector<Row>& rows);
void add_table_rows(std::vector<Row>& rows);
void add_submit_rows(std::vector<Row>& rows);
void add_open_rows(std::vector<Row>& rows);
void add_tcp_rows(std::vector<Row>& rows, const BenchOptions& options);
void add_mixed_rows(std::vector<Row>& rows);
void add_idle_rows(std::vector<Row>& rows);
void add_ucx_rows(std::vector<Row>& rows);
void add_verbs_rows(std::vector<Row>& rows);

/// "64k", "1m", "8": sizes as ids spell them.
std::string size_id(std::uint64_t bytes);

}  // namespace hawser::cli::bench
