// What shm's port costs beside what the machine can do: two processes, no agent.
//
//   shm_raw_bench [repeats]
//
// Latencies are the best and the median of all repeats in nanoseconds, bandwidths the best in GB/s (10^9 bytes/s). The
// raw way and Hawser's take turns. The probe bounces one cache line between the two processes: it tells whether their
// processors share a cache, which changes all that moves between them.

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backend/shm/factory.h"
#include "base/copy.h"
#include "base/rng.h"

namespace {

using namespace hawser;
using namespace hawser::backend;

constexpr std::size_t kArenaSize = std::size_t{512} << 20;

double now_ns() { return static_cast<double>(Clock::steady().now().ns()); }

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  static_cast<void>(::sched_setaffinity(0, sizeof set, &set));
}

/// Words and bytes that both processes see, beside shm itself.
struct Board {
  alignas(128) std::atomic<std::uint64_t> ping{0};
  alignas(128) std::atomic<std::uint64_t> pong{0};
  alignas(128) std::atomic<bool> probes{false};
  char address[256] = {};
  std::size_t address_size = 0;
  base::Id128 keys[2];
  std::uint32_t generations[2] = {};
  char extras[2] = {};
  std::atomic<bool> is_ready{false};
};

struct Host {
  explicit Host(const char* name) {
    identity.name = name;
    identity.incarnation = base::random_id128();
    const Context context{identity, regions, log, base::Rng(1), Security::kDefault, {}, {}, Clock::steady()};
    backend = std::move(shm_factory().open(context, {})).value();
    port = std::move(backend->open_port()).value();
  }
  /// One round of a lane; returns messages received.
  std::size_t round() {
    port->turn(Clock::steady().now(), {});
    PortEvent events[16];
    const std::size_t count = port->poll(events);
    std::size_t messages = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (events[i].kind == PortEvent::Kind::kMessage) ++messages;
      if (events[i].kind == PortEvent::Kind::kPathUp) path = events[i].path;
      if (events[i].kind == PortEvent::Kind::kPathDown) is_down = true;
      if (events[i].kind == PortEvent::Kind::kChunkDone) {
        ++chunks_done;
        if (!events[i].status.ok()) std::printf("chunk: %s\n", events[i].status.to_string().c_str());
      }
    }
    return messages;
  }
  Identity identity;
  RegionTable regions{16};
  base::Logger log;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Port> port;
  Path* path = nullptr;
  bool is_down = false;
  std::size_t chunks_done = 0;
};

std::shared_ptr<const RegionEntry> add(Host& host, std::shared_ptr<Arena> arena, std::span<std::byte> bytes) {
  RegionEntry entry;
  entry.key = base::random_id128();
  entry.base = bytes.data();
  entry.size = bytes.size();
  entry.rights = Rights::kReadWrite;
  entry.arena = std::move(arena);
  return host.regions.add(std::move(entry)).value();
}

std::span<std::byte> anonymous(std::size_t size) {
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return {static_cast<std::byte*>(base), size};
}

/// The target: one arena, one foreign region; answers each message with one.
[[noreturn]] void serve(Board& board) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin_to(1);
  Host host("target");
  auto arena = Arena::create(kArenaSize, Rights::kReadWrite, HugePages::kOff).value();
  const auto memory = anonymous(kArenaSize / 2);
  const std::shared_ptr<const RegionEntry> regions[] = {add(host, arena, arena->bytes()), add(host, nullptr, memory)};
  for (std::size_t i = 0; i < 2; ++i) {
    board.keys[i] = regions[i]->key;
    board.generations[i] = regions[i]->generation;
    board.extras[i] = host.backend->add_region(*regions[i]).value()[0];
  }
  board.address_size = host.backend->address().copy(board.address, sizeof board.address);
  board.is_ready = true;
  const std::byte answer[32] = {};
  for (std::uint64_t seen = 0;;) {
    if (board.probes.load(std::memory_order_relaxed)) {
      const std::uint64_t ping = board.ping.load(std::memory_order_acquire);
      if (ping != seen) board.pong.store(seen = ping, std::memory_order_release);
      continue;
    }
    for (std::size_t left = host.round(); left > 0; --left) host.path->send(Priority::kBulk, answer, {});
  }
}

double probe(Board& board, std::uint64_t rounds) {
  board.probes = true;
  const double start = now_ns();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const std::uint64_t value = board.ping.load(std::memory_order_relaxed) + 1;
    board.ping.store(value, std::memory_order_release);
    while (board.pong.load(std::memory_order_acquire) != value) {
    }
  }
  const double elapsed = now_ns() - start;
  board.probes = false;
  return elapsed / static_cast<double>(rounds);
}

struct Sample {
  std::string name;
  std::vector<double> values;
};

class Table {
 public:
  void add(const std::string& name, double value) {
    for (Sample& sample : samples_) {
      if (sample.name == name) return sample.values.push_back(value);
    }
    samples_.push_back({name, {value}});
  }
  void print(bool higher_is_better) {
    for (Sample& sample : samples_) {
      std::sort(sample.values.begin(), sample.values.end());
      const double best = higher_is_better ? sample.values.back() : sample.values.front();
      std::printf("%-44s best %9.1f  median %9.1f\n", sample.name.c_str(), best,
                  sample.values[sample.values.size() / 2]);
    }
  }

 private:
  std::vector<Sample> samples_;
};

struct Bench {
  Host host{"initiator"};
  Board& board;
  std::shared_ptr<Arena> arena = Arena::create(kArenaSize / 2, Rights::kReadWrite, HugePages::kOff).value();
  std::span<std::byte> local = arena->bytes();
  std::shared_ptr<Arena> other_arena = Arena::create(kArenaSize / 2, Rights::kReadWrite, HugePages::kOff).value();
  std::span<std::byte> other = other_arena->bytes();
  Path* path = nullptr;
  Binding* mapped = nullptr;
  Binding* foreign = nullptr;
  base::Rng rng{7};
  std::uint64_t next_transfer = 1;

  explicit Bench(Board& shared) : board(shared) {
    const PathTarget target{"target", {}, {board.address, board.address_size}, {}, Instant::max()};
    path = host.port->open_path(target, Clock::steady().now()).value();
    while (host.path == nullptr) host.round();
    mapped = bind(0, kArenaSize);
    foreign = bind(1, kArenaSize / 2);
  }
  Binding* bind(std::uint32_t index, std::uint64_t size) {
    const RemoteRegionRef ref{index, board.generations[index], board.keys[index], size, Rights::kReadWrite,
                              {},    {&board.extras[index], 1}};
    auto bound = path->bind(ref);
    if (!bound) std::printf("bind: %s\n", bound.error().to_string().c_str());
    return bound ? *bound : nullptr;
  }

  /// All chunks, to their end.
  void move(std::span<const Chunk> chunks) {
    std::size_t taken = 0;
    std::size_t done = 0;
    host.chunks_done = 0;
    while (done + host.chunks_done < chunks.size()) {
      const Submitted submitted = path->submit(chunks.subspan(taken), Instant());
      taken += submitted.taken;
      done += submitted.done;
      if (done + host.chunks_done < chunks.size()) host.round();
    }
  }
  std::vector<Chunk> cut(Binding* target, Operation op, std::span<const Piece> pieces) {
    std::vector<Chunk> chunks;
    const std::uint64_t transfer = next_transfer++;
    for (std::size_t i = 0; i < pieces.size();) {
      Chunk chunk;
      chunk.op = op;
      chunk.transfer = transfer;
      chunk.target = target;
      std::size_t end = i;
      while (end < pieces.size() && end - i < 1024 && (end == i || chunk.bytes + pieces[end].size <= 1u << 20)) {
        chunk.bytes += pieces[end++].size;
      }
      chunk.pieces = pieces.subspan(i, end - i);
      chunks.push_back(chunk);
      i = end;
    }
    return chunks;
  }
  /// `count` pieces; one: contiguous from the start, else at random places.
  std::vector<Piece> pieces(std::size_t size, std::size_t count) {
    std::vector<Piece> made;
    const std::size_t slots = local.size() / size;
    for (std::size_t i = 0; i < count; ++i) {
      made.push_back({local.data() + rng.below(slots) * size, rng.below(slots) * size, size});
    }
    return made;
  }
  std::vector<Piece> contiguous(std::size_t size) {
    std::vector<Piece> made;
    for (std::size_t at = 0; at < size; at += 1u << 20) {
      made.push_back({local.data() + at, at, std::min<std::size_t>(size - at, 1u << 20)});
    }
    return made;
  }
};

double time_ns(int times, const std::function<void()>& run) {
  const double start = now_ns();
  for (int i = 0; i < times; ++i) run();
  return (now_ns() - start) / times;
}

void latencies(Bench& bench, Table& table) {
  table.add("probe: round trip of a line", probe(bench.board, 20000));
  const std::byte message[32] = {};
  table.add("message there and back, 32 B", time_ns(20000, [&] {
              bench.path->send(Priority::kBulk, message, {});
              while (bench.host.round() == 0) {
              }
            }));
  const Piece word{bench.local.data(), 64, 8};
  const auto chunks = bench.cut(bench.mapped, Operation::kWrite, {&word, 1});
  table.add("write 8 B, message there and back", time_ns(20000, [&] {
              bench.move(chunks);
              bench.path->send(Priority::kBulk, message, {});
              while (bench.host.round() == 0) {
              }
            }));
  table.add("submit of one 8 B write", time_ns(200000, [&] { bench.path->submit(chunks, Instant()); }));
  const auto reads = bench.cut(bench.mapped, Operation::kRead, {&word, 1});
  table.add("submit of one 8 B read", time_ns(200000, [&] { bench.path->submit(reads, Instant()); }));
  table.add("an idle turn and poll", time_ns(200000, [&] { bench.host.round(); }));
  if (bench.foreign != nullptr) {
    const auto foreign = bench.cut(bench.foreign, Operation::kWrite, {&word, 1});
    table.add("foreign write of 8 B", time_ns(5000, [&] { bench.move(foreign); }));
  }
  const auto many = bench.pieces(8, 1000);
  const auto cut = bench.cut(bench.mapped, Operation::kWrite, many);
  table.add("1000 x 8 B at random, each", time_ns(50, [&] { bench.move(cut); }) / 1000);
  std::vector<Piece> near;
  for (std::size_t i = 0; i < 1000; ++i) near.push_back({bench.local.data() + i * 64, i * 128, 8});
  const auto cut_near = bench.cut(bench.mapped, Operation::kWrite, near);
  table.add("1000 x 8 B in cache, each", time_ns(500, [&] { bench.move(cut_near); }) / 1000);
}

/// Nanoseconds of the best copy within this process, between two mappings.
double copy_within(Bench& bench, Operation op, std::span<const Piece> pieces) {
  std::vector<base::CopyPiece> copies;
  std::uint64_t total = 0;
  for (const Piece& piece : pieces) {
    std::byte* far = bench.other.data() + piece.remote;
    copies.push_back(op == Operation::kWrite ? base::CopyPiece{far, piece.local, piece.size}
                                             : base::CopyPiece{piece.local, far, piece.size});
    total += piece.size;
  }
  const bool is_scattered = copies.size() > 1 && copies[0].target + copies[0].size != copies[1].target;
  return time_ns(1, [&] {
    if (base::copy_pieces(copies, {.total_bytes = total, .scattered = is_scattered, .read_elsewhere = false})) {
      base::stream_fence();
    }
  });
}

/// GB/s of a transfer. Each way gets pieces of its own: who comes second must not find them in the caches.
void bandwidth(Bench& bench, Table& table, const std::string& name, const std::function<std::vector<Piece>()>& make,
               int times) {
  for (const Operation op : {Operation::kWrite, Operation::kRead}) {
    double bytes = 0;
    double ns[3] = {};
    for (int i = 0; i < 3 * times; ++i) {
      const auto pieces = make();
      const int way = i % 3;
      if (way == 2 && bench.foreign == nullptr) continue;
      const auto chunks = bench.cut(way == 2 ? bench.foreign : bench.mapped, op, pieces);
      ns[way] += way == 1 ? copy_within(bench, op, pieces) : time_ns(1, [&] { bench.move(chunks); });
      for (const Piece& piece : pieces) bytes += way == 0 ? static_cast<double>(piece.size) : 0;
    }
    const std::string label = name + (op == Operation::kWrite ? " write" : " read");
    table.add(label, bytes / ns[0]);
    table.add(label + ", best copy in process", bytes / ns[1]);
    if (ns[2] > 0) table.add(label + ", foreign", bytes / ns[2]);
  }
}

void run(Board& board, int repeats) {
  pin_to(0);
  Bench bench(board);
  Table latency;
  Table speed;
  // The first pass maps and faults; it is not counted.
  const auto all = bench.contiguous(bench.local.size());
  for (Binding* target : {bench.mapped, bench.foreign}) {
    if (target != nullptr) bench.move(bench.cut(target, Operation::kWrite, all));
  }
  for (int i = 0; i < repeats; ++i) {
    latencies(bench, latency);
    bandwidth(
        bench, speed, "64 KiB", [&] { return bench.contiguous(65536); }, 200);
    bandwidth(
        bench, speed, "1 MiB", [&] { return bench.contiguous(1 << 20); }, 20);
    bandwidth(
        bench, speed, "64 MiB", [&] { return bench.contiguous(64 << 20); }, 2);
    for (const std::size_t size : {4096u, 16384u, 65536u}) {
      bandwidth(
          bench, speed, "1000 x " + std::to_string(size / 1024) + " KiB", [&] { return bench.pieces(size, 1000); }, 2);
    }
  }
  std::printf("nanoseconds\n");
  latency.print(false);
  std::printf("GB/s\n");
  speed.print(true);
  std::printf("probe afterwards: %.0f ns\n", probe(board, 20000));
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* board = new (shared) Board;
  const pid_t child = ::fork();
  if (child == 0) serve(*board);
  while (!board->is_ready) {
  }
  run(*board, repeats);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return 0;
}
