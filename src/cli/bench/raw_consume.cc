#include "cli/bench/raw_consume.h"

#include "base/spin.h"
#include "cli/bench/blocks.h"
#include "cli/bench/pace.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {

void consume_slots(const Board& board, std::uint64_t slot_bytes, const std::function<bool()>& over) {
  BoardPage& page = board.page();
  std::uint64_t sum = 0;
  for (std::uint64_t slot = 0;; ++slot) {
    for (std::uint32_t spins = 1; page.filled.load(std::memory_order_acquire) <= slot; ++spins) {
      if (spins % 256 == 0 && over()) return;
      base::cpu_relax();
    }
    sum += read_all(board.arena().subspan(slot % kConsumeSlots * slot_bytes, slot_bytes));
    asm volatile("" : : "r"(sum) : "memory");
    page.emptied.store(slot + 1, std::memory_order_release);
  }
}

Result<double> fill_slots(const Board& board, std::span<const std::byte> source, const CopyWay& way, Duration budget) {
  BoardPage& page = board.page();
  Pace pace(source.size(), budget);
  for (std::uint64_t slot = 0; pace.goes_on(); ++slot) {
    const std::int64_t patience = now_ns() + 5'000'000'000;
    for (std::uint32_t spins = 1; page.emptied.load(std::memory_order_acquire) + kConsumeSlots <= slot; ++spins) {
      if (spins % 65536 == 0 && now_ns() > patience) return Status(Code::kTimedOut, "the raw reader does not read");
      base::cpu_relax();
    }
    if (slot >= kConsumeSlots) pace.count();
    const base::CopyPiece piece{board.arena().data() + slot % kConsumeSlots * source.size(), source.data(),
                                source.size()};
    way.run({&piece, 1});
    page.filled.store(slot + 1, std::memory_order_release);
  }
  return pace.gb_per_s();
}

}  // namespace hawser::cli::bench
