#include "cli/table.h"

#include <algorithm>

namespace hawser::cli {
namespace {

// Columns are counted in code points: good enough for the letters that the tables use (such as µ).
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void append_cell(std::string& line, const std::string& text, std::size_t width, Align align) {
  const std::size_t pad = width - std::min(width, width_of(text));
  if (align == Align::kRight) line.append(pad, ' ');
  line += text;
  if (align == Align::kLeft) line.append(pad, ' ');
}

}  // namespace

std::string Table::to_string(std::size_t indent) const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines[0].push_back(column.title);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size(), 0);
  for (auto& line : lines) {
    line.resize(columns_.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const auto& cells : lines) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += "  ";
      append_cell(line, cells[i], widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace hawser::cli
