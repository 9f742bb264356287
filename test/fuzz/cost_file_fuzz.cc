// Files of cost models: reading any text, and what it accepts is good and is written as it is read.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "runtime/cost_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<runtime::CostFile> file = runtime::parse_cost_file(text, "fuzzed");
  if (!file) return 0;
  HAWSER_ASSERT(check_costs(file->model()).ok(), "what is accepted is within the bounds");
  const Result<runtime::CostFile> again = runtime::parse_cost_file(to_toml(*file), "written");
  HAWSER_ASSERT(again.has_value() && again->costs == file->costs, "the values are written exactly");
  return 0;
}
