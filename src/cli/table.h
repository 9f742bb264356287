#pragma once

// An aligned table of text, as all commands print it: a header, two spaces between columns, numbers to the right.

#include <string>
#include <vector>

namespace hawser::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Missing cells at the end are empty; surplus ones are left out.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// `indent` spaces before each line; no spaces at the ends of lines.
  std::string to_string(std::size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hawser::cli
