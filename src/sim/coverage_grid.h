#pragma once

// CoverageGrid: how often each row met each column, such as a fault and what was going on when it struck. The product
// of simulation is not that seeds pass, but that they pass while every fault met every moment; so a run of many seeds
// is judged by its emptiest cell.
//
// Thread rule: a value.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::simulation {

class CoverageGrid {
 public:
  /// Whether there is such a thing as this row at that column.
  using Possible = std::function<bool(std::size_t row, std::size_t column)>;
  struct Labels {
    std::string_view corner;
    std::function<std::string_view(std::size_t)> row, column;
  };

  CoverageGrid(std::size_t rows, std::size_t columns) : columns_(columns), cells_(rows * columns) {}

  void count(std::size_t row, std::size_t column) { ++cells_.at(row * columns_ + column); }
  std::uint64_t count_of(std::size_t row, std::size_t column) const { return cells_.at(row * columns_ + column); }
  /// A grid of the same size.
  void add(const CoverageGrid& other);
  /// Cells that are possible and empty.
  std::size_t empty_cells(const Possible& possible) const;
  /// For people, a line for each row; "-" where there is no such thing.
  std::string table(const Labels& labels, const Possible& possible) const;

 private:
  std::size_t rows() const { return cells_.size() / columns_; }
  std::size_t columns_;
  std::vector<std::uint64_t> cells_;
};

}  // namespace hawser::simulation
