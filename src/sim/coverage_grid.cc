#include "sim/coverage_grid.h"

#include <fmt/format.h>

#include "base/check.h"

namespace hawser::simulation {

void CoverageGrid::add(const CoverageGrid& other) {
  HAWSER_ASSERT(other.columns_ == columns_ && other.cells_.size() == cells_.size(),
                "grids that are added have one size");
  for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] += other.cells_[i];
}

std::size_t CoverageGrid::empty_cells(const Possible& possible) const {
  std::size_t empty = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i] == 0 && possible(i / columns_, i % columns_)) ++empty;
  }
  return empty;
}

std::string CoverageGrid::table(const Labels& labels, const Possible& possible) const {
  std::string text = fmt::format("{:<12}", labels.corner);
  for (std::size_t column = 0; column < columns_; ++column) text += fmt::format("{:>14}", labels.column(column));
  for (std::size_t row = 0; row < rows(); ++row) {
    text += fmt::format("\n{:<12}", labels.row(row));
    for (std::size_t column = 0; column < columns_; ++column) {
      text += fmt::format("{:>14}", possible(row, column) ? std::to_string(count_of(row, column)) : "-");
    }
  }
  return text + "\n";
}

}  // namespace hawser::simulation
