// A peer that says anything, in any pieces, while this side has requests of its own under way, cancels them and closes
// its region: nothing outside of the region is touched, and every chunk ends once.
//
// Input: commands of one byte. The low three bits say what, the rest how: 0-3 deliver (16 bits of length, bytes) on
// stream `bit 3`, with bit 4 on one of those of links; 4 write; 5 read; 6 cancel; 7 close the region, turn or drain.

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "backend/stream/machine_driver.h"

using namespace hawser;  // NOLINT: one file, one function
using namespace hawser::backend;

namespace {

constexpr std::size_t kMargin = 1024;
constexpr std::size_t kRegion = 32 * 1024;
constexpr unsigned kStreams[] = {0, 1, stream::stream_of({Priority::kRealtime, 16}),
                                 stream::stream_of({Priority::kBulk, 17})};

void check(bool good) {
  if (!good) abort();
}

struct Fuzzed {
  Fuzzed() : machine(regions, events, nullptr, {.peer = "peer", .streams = 2, .small_max = 4096, .is_apart = true}) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory.data() + kMargin;
    entry.size = kRegion;
    entry.rights = Rights::kReadWrite;
    region = regions.add(std::move(entry)).value();
    for (const unsigned stream : kStreams) {
      if (stream != 0) machine.open_stream(stream);
    }
    RemoteRegionRef ref;
    ref.key = {1, 2};
    binding = machine.bind(ref);
  }
  void submit(Operation op, unsigned how) {
    static constexpr std::uint64_t kSizes[] = {8, 3000, 9000, 0};
    pieces.push_back(std::make_unique<Piece>(Piece{local.data(), 0, kSizes[how % 4]}));
    Chunk chunk;
    chunk.op = op;
    chunk.transfer = 1 + how % 3;
    chunk.cookie = ended.size();
    chunk.target = binding;
    chunk.pieces = {pieces.back().get(), 1};
    chunk.bytes = pieces.back()->size;
    if (machine.submit({&chunk, 1}) == 1) ended.push_back(0);
  }
  void collect() {
    std::array<PortEvent, 16> out;
    for (std::size_t count = events.poll(out); count > 0; count = events.poll(out)) {
      for (const PortEvent& event : std::span(out).first(count)) {
        if (event.kind == PortEvent::Kind::kChunkDone) check(++ended.at(event.cookie) == 1);
      }
    }
  }
  void turn(unsigned how) {
    if (how == 0) regions.close(region->index, region->generation);
    if (how == 1) static_cast<void>(machine.region_quiet(region->index, region->generation));
    static_cast<void>(stream::drain(machine, kStreams[how & 3]));
    collect();
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kRegion + 2 * kMargin, std::byte{0xee});
  std::vector<std::byte> local = std::vector<std::byte>(16 * 1024);
  RegionTable regions{4};
  stream::EventQueue events;
  stream::Machine machine;
  std::shared_ptr<const RegionEntry> region;
  Binding* binding = nullptr;
  std::vector<std::unique_ptr<Piece>> pieces;
  std::vector<int> ended;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzzed fuzzed;
  base::ByteReader in({reinterpret_cast<const std::byte*>(data), size});
  bool alive = true;
  while (!in.at_end() && alive) {
    const unsigned command = in.u8();
    const unsigned how = command >> 3;
    switch (command & 7) {
      case 4:
        fuzzed.submit(Operation::kWrite, how);
        break;
      case 5:
        fuzzed.submit(Operation::kRead, how);
        break;
      case 6:
        fuzzed.machine.cancel(1 + how % 3);
        break;
      case 7:
        fuzzed.turn(how % 4);
        break;
      default: {
        const auto bytes = in.bytes(std::min<std::size_t>(in.u16(), in.remaining()));
        const auto give = (how & 4) != 0 ? stream::deliver_in_place : stream::deliver;
        alive = fuzzed.machine.begin_turn().ok() && give(fuzzed.machine, kStreams[how & 3], bytes).ok();
      }
    }
  }
  fuzzed.collect();
  fuzzed.machine.fail(Status(Code::kDisconnected, "the end"));
  fuzzed.collect();
  for (const int count : fuzzed.ended) check(count == 1);
  for (std::size_t i = 0; i < kMargin; ++i) {
    check(fuzzed.memory[i] == std::byte{0xee} && fuzzed.memory[kMargin + kRegion + i] == std::byte{0xee});
  }
  return 0;
}
