// What ranks tell one another when they enter a world: any words of any number of ranks come to one model within its
// bounds, or to an error.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "runtime/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser;
  std::vector<std::uint64_t> words(size / sizeof(std::uint64_t) / runtime::kEntryWords * runtime::kEntryWords);
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(std::uint64_t));
  const Result<runtime::SettledCosts> settled = runtime::settle_costs(words);
  if (!settled) {
    HAWSER_ASSERT(settled.error().code() == Code::kInvalid, "the error has its type");
    return 0;
  }
  HAWSER_ASSERT(check_costs(settled->model).ok(), "what is settled is within the bounds");
  HAWSER_ASSERT(!settled->teller || *settled->teller < words.size() / runtime::kEntryWords, "a rank told it");
  for (std::size_t at = 0; at < words.size(); at += runtime::kEntryWords) {
    const auto told = runtime::costs_of(std::span(words).subspan(at).first<runtime::kEntryWords>());
    HAWSER_ASSERT(told.has_value() && (!*told || **told == settled->model), "all that was told is settled");
    HAWSER_ASSERT(runtime::entry_of(words[at], *told)[1] == words[at + 1], "an entry has one form");
  }
  return 0;
}
