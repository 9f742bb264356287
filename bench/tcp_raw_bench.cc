// The tcp backend against raw sockets that do the same, interleaved in one run: two processes, one per core.
//
//   tcp_raw_bench [--rounds N] [--only TEXT] [--param key=value]... [--tls 1] [--quic 1] [--quic-param key=value]...
//                 [--bare BYTES [--bare-streams N]] [--connects N]
//
// Each row runs raw and hawser by turns, N times, and prints the medians and their ratio. `near` or `far` before a row
// tells how the two cores share caches (round trip of one cache line below or above 260 ns); rows of different words do
// not compare.
//
// --tls 1 runs the backend over TLS, too, in the same rounds. Its ceiling is the sum of the time that the backend takes
// without it and of what a TLS session alone takes for so many bytes, sealing on one core while the other opens. It
// prints first what of the processor such a session takes. --quic 1 runs the backend quic in the same rounds, too,
// beside the same ceiling, and --bare BYTES ngtcp2 alone with datagrams of that size (bare_quic.h); for the backend the
// same is --quic-param datagram=BYTES. --covered 1 runs these ways alone, for a profiler; it prints no ratio.
// --connects N measures how long N paths take to come up, in clear and by these ways, and nothing else.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#ifdef HAWSER_WITH_QUIC
#include "backend/quic/factory.h"
#include "bare_quic.h"
#endif
#include "backend/tcp/factory.h"
#include "base/id128.h"
#include "tls/session.h"

namespace hawser {
namespace {

using backend::Chunk;
using backend::Piece;
using backend::PortEvent;

constexpr std::size_t kArena = 256u << 20;
constexpr std::size_t kRawCall = 1u << 20;

std::int64_t now_ns() { return Clock::steady().now().ns(); }

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

std::byte* map_shared(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) abort();
  return static_cast<std::byte*>(memory);
}

/// What the two processes share beside the network, for the bench's own ends.
struct Board {
  std::atomic<std::uint64_t> line;
  std::atomic<bool> stop;
  std::atomic<bool> ready;
  char address[512];
  std::uint16_t bare_port;
  base::Id128 incarnation[2];
  base::Id128 key[2];
};

struct Quantiles {
  double p50 = 0, p99 = 0;
};
Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 99 / 100]};
}

// ---- raw sockets ----

void send_all(int fd, std::vector<iovec> parts) {
  std::size_t first = 0;
  while (first < parts.size()) {
    msghdr message = {};
    message.msg_iov = parts.data() + first;
    message.msg_iovlen = std::min<std::size_t>(parts.size() - first, 64);
    ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT);
    for (; sent > 0 && first < parts.size(); ++first) {
      const std::size_t step = std::min<std::size_t>(static_cast<std::size_t>(sent), parts[first].iov_len);
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + step;
      parts[first].iov_len -= step;
      sent -= static_cast<ssize_t>(step);
      if (parts[first].iov_len > 0) break;
    }
  }
}
void receive_all(int fd, std::vector<iovec> parts) {
  std::size_t first = 0;
  while (first < parts.size()) {
    msghdr message = {};
    message.msg_iov = parts.data() + first;
    message.msg_iovlen = std::min<std::size_t>(parts.size() - first, 64);
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
    for (; got > 0 && first < parts.size(); ++first) {
      const std::size_t step = std::min<std::size_t>(static_cast<std::size_t>(got), parts[first].iov_len);
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + step;
      parts[first].iov_len -= step;
      got -= static_cast<ssize_t>(step);
      if (parts[first].iov_len > 0) break;
    }
  }
}

void raw_tune(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

int raw_listen(std::uint16_t* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  raw_tune(fd);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 4) != 0) abort();
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  *port = address.sin_port;
  return fd;
}
// ---- what is measured ----

struct Shape {
  std::string name;
  Operation op = Operation::kWrite;
  std::size_t block = 8;
  std::size_t blocks = 1;  ///< In one transfer, random on both sides when more than one.
  std::size_t count = 1;   ///< Transfers, one after the other.
  bool ping_pong = false;
  bool with_bulk = false;     ///< Beside bulk writes to the same peer, whose rate is printed.
  std::int64_t pause_ns = 0;  ///< Bulk alone between two transfers.
};

std::vector<std::size_t> offsets(const Shape& shape, std::uint64_t seed) {
  std::vector<std::size_t> all(shape.blocks == 1 ? 1 : kArena / shape.block / 2);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = 2 * i * shape.block;  // adjacent on neither side
  base::Rng rng(seed);
  rng.shuffle(all);
  all.resize(shape.blocks);
  return all;
}
std::vector<iovec> parts_at(std::byte* arena, const Shape& shape, std::uint64_t seed) {
  std::vector<iovec> parts;
  for (const std::size_t offset : offsets(shape, seed)) {
    for (std::size_t at = 0; at < shape.block; at += kRawCall) {
      parts.push_back({arena + offset + at, std::min(kRawCall, shape.block - at)});
    }
  }
  return parts;
}

void raw_child(const Shape& shape, std::byte* arena, std::uint16_t port) {
  pin(1);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  raw_tune(fd);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) abort();
  char byte = 0;
  std::array<std::byte, 8> small;
  const auto parts = parts_at(arena, shape, 2);
  for (std::size_t i = 0; i < shape.count; ++i) {
    if (shape.ping_pong) {
      receive_all(fd, {{small.data(), 8}});
      send_all(fd, {{small.data(), 8}});
    } else if (shape.op == Operation::kWrite) {
      receive_all(fd, parts);
      send_all(fd, {{&byte, 1}});
    } else {
      receive_all(fd, {{&byte, 1}});
      send_all(fd, parts);
    }
  }
  _exit(0);
}

std::vector<double> run_raw(const Shape& shape, std::byte* mine, std::byte* theirs) {
  std::uint16_t port = 0;
  const int listener = raw_listen(&port);
  const pid_t child = fork();
  if (child == 0) raw_child(shape, theirs, port);
  const int fd = accept(listener, nullptr, nullptr);
  char byte = 0;
  std::array<std::byte, 8> small = {};
  const auto parts = parts_at(mine, shape, 1);
  std::vector<double> times;
  for (std::size_t i = 0; i < shape.count; ++i) {
    const std::int64_t begin = now_ns();
    if (shape.ping_pong) {
      send_all(fd, {{small.data(), 8}});
      receive_all(fd, {{small.data(), 8}});
    } else if (shape.op == Operation::kWrite) {
      send_all(fd, parts);
      receive_all(fd, {{&byte, 1}});
    } else {
      send_all(fd, {{&byte, 1}});
      receive_all(fd, parts);
    }
    times.push_back(static_cast<double>(now_ns() - begin));
  }
  waitpid(child, nullptr, 0);
  close(fd);
  close(listener);
  return times;
}

// ---- the backend ----

/// What carries the bytes.
struct Over {
  backend::Factory factory = backend::tcp_factory();
  Params params = {};
  Security security = Security::kDefault;
};

struct End {
  End(int number, Board& its_board, std::byte* memory, const Over& over) : board(its_board), regions(16) {
    identity.name = number == 0 ? "a" : "b";
    identity.incarnation = board.incarnation[number];
    identity.driven = true;
    identity.public_key = keys.public_key();
    context = std::make_unique<backend::Context>(backend::Context{.identity = identity,
                                                                  .regions = regions,
                                                                  .log = log,
                                                                  .rng = base::Rng(7),
                                                                  .security = over.security,
                                                                  .heartbeat = std::chrono::milliseconds(250),
                                                                  .clock = Clock::steady(),
                                                                  .keys = &keys});
    backend = over.factory.open(*context, over.params).value();
    port = backend->open_port().value();
    backend::RegionEntry entry;
    entry.key = board.key[number];
    entry.base = memory;
    entry.size = kArena;
    entry.rights = Rights::kReadWrite;
    region = regions.add(std::move(entry)).value();
  }
  std::size_t turn() {
    const std::size_t work = port->turn(Clock::steady().now(), backend::TurnBudget{});
    for (std::size_t count = port->poll(events); count > 0; count = port->poll(events)) {
      for (std::size_t i = 0; i < count; ++i) note(events[i]);
    }
    return work;
  }
  void note(const PortEvent& event) {
    if (event.kind == PortEvent::Kind::kChunkDone) {
      if (!event.status.ok()) fprintf(stderr, "chunk: %s\n", event.status.to_string().c_str());
      (event.cookie == kBulk ? bulk_done : done) += 1;
    }
    if (event.kind == PortEvent::Kind::kMessage) ++messages;
    if (event.kind == PortEvent::Kind::kArrival) ++arrivals;
    if (event.kind == PortEvent::Kind::kPathUp) path = event.path;
    if (event.kind == PortEvent::Kind::kPathDown) {
      if (!board.stop) fprintf(stderr, "down: %s\n", event.status.to_string().c_str());
      down = true;
    }
  }
  void bind(int other) {
    backend::RemoteRegionRef ref;
    ref.index = region->index;
    ref.generation = region->generation;
    ref.key = board.key[other];
    binding = path->bind(ref).value();
  }
  /// A write with a notification, as the agent sends it: a covered chunk and a message.
  void write_and_notify(std::byte* from, std::uint64_t transfer) {
    const Piece piece{from, 0, 8};
    small = piece;
    Chunk chunk{.op = Operation::kWrite,
                .covered = true,
                .transfer = transfer,
                .target = binding,
                .pieces = {&small, 1},
                .bytes = 8};
    path->submit({&chunk, 1}, Clock::steady().now());
    static constexpr char kText[] = "request-17 notify";
    path->send(Priority::kRealtime, std::as_bytes(std::span(kText)), {});
  }

  static constexpr std::uint64_t kBulk = 1;
  Board& board;
  tls::KeyPair keys = tls::KeyPair::make();
  backend::Identity identity;
  backend::RegionTable regions;
  base::Logger log;
  std::unique_ptr<backend::Context> context;
  std::unique_ptr<backend::Backend> backend;
  std::unique_ptr<backend::Port> port;
  std::shared_ptr<const backend::RegionEntry> region;
  std::array<PortEvent, 64> events;
  Piece small;
  backend::Path* path = nullptr;
  backend::Binding* binding = nullptr;
  std::uint64_t done = 0, bulk_done = 0, messages = 0, arrivals = 0;
  bool down = false;
};

void hawser_child(const Shape& shape, Board& board, std::byte* arena, const Over& over) {
  pin(1);
  End end(1, board, arena, over);
  snprintf(board.address, sizeof(board.address), "%s", end.backend->address().c_str());
  board.ready = true;
  std::uint64_t answered = 0;
  while (!board.stop && !end.down) {
    end.turn();
    if (!shape.ping_pong || end.messages <= answered || end.arrivals <= answered) continue;
    if (end.binding == nullptr) end.bind(0);
    ++answered;
    end.write_and_notify(arena, answered);
  }
  _exit(0);
}

struct Bulk {
  std::vector<Piece> pieces;
  std::uint64_t submitted = 0;
  void go_on(End& end) {
    while (submitted < end.bulk_done + 16) {
      Chunk chunk{.op = Operation::kWrite,
                  .transfer = 1u << 30,
                  .cookie = End::kBulk,
                  .target = end.binding,
                  .pieces = {&pieces[submitted % pieces.size()], 1},
                  .bytes = 1u << 20};
      if (end.path->submit({&chunk, 1}, Clock::steady().now()).taken == 0) return;
      ++submitted;
    }
  }
};

std::vector<Piece> pieces_of(const Shape& shape, std::byte* mine) {
  const auto local = offsets(shape, 1), remote = offsets(shape, 2);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < shape.blocks; ++i) {
    for (std::size_t at = 0; at < shape.block; at += 1u << 20) {
      pieces.push_back({mine + local[i] + at, remote[i] + at, std::min<std::size_t>(1u << 20, shape.block - at)});
    }
  }
  return pieces;
}

std::vector<Chunk> chunks_of(std::span<const Piece> pieces, const Shape& shape, backend::Binding* target) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 0; at < pieces.size();) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    while (at + count < pieces.size() && count < 256 && bytes + pieces[at + count].size <= 1u << 20) {
      bytes += pieces[at + count++].size;
    }
    chunks.push_back({.op = shape.op,
                      .index = static_cast<std::uint32_t>(chunks.size()),
                      .transfer = 5,
                      .cookie = 0,
                      .target = target,
                      .pieces = pieces.subspan(at, count),
                      .bytes = bytes});
    at += count;
  }
  return chunks;
}

/// The second process of a row, and the board that both see.
class Partner {
 public:
  template <typename Run>
  explicit Partner(const Run& run) : board(new (map_shared(sizeof(Board))) Board()), child_(begin(run)) {
    while (!board->ready) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) std::exit(1);  // It has said why.
      sched_yield();
    }
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;
  ~Partner() { munmap(board, sizeof(Board)); }
  void stop() const {
    board->stop = true;
    waitpid(child_, nullptr, 0);
  }

  Board* const board;

 private:
  template <typename Run>
  pid_t begin(const Run& run) {
    for (int i = 0; i < 2; ++i) board->incarnation[i] = base::random_id128(), board->key[i] = base::random_id128();
    const pid_t child = fork();
    if (child == 0) run(*board);
    return child;
  }

  const pid_t child_;
};

std::vector<double> run_hawser(const Shape& shape, std::byte* mine, std::byte* theirs, const Over& over) {
  const Partner partner([&](Board& board) { hawser_child(shape, board, theirs, over); });
  Board* const board = partner.board;
  std::vector<double> times;
  {
    End end(0, *board, mine, over);
    backend::PathTarget target;
    target.peer = "b";
    target.incarnation = board->incarnation[1];
    target.address = board->address;
    target.deadline = Clock::steady().now() + std::chrono::seconds(3);
    static_cast<void>(end.port->open_path(target, Clock::steady().now()).value());
    while (end.path == nullptr && !end.down) end.turn();
    const std::int64_t settled = now_ns() + 3'000'000;  // The further streams come up.
    while (now_ns() < settled) end.turn();
    end.bind(1);
    const std::vector<Piece> pieces = pieces_of(shape, mine);
    const std::vector<Chunk> chunks = chunks_of(pieces, shape, end.binding);
    Bulk bulk;
    for (std::size_t i = 0; i < 64; ++i) bulk.pieces.push_back({mine + (i << 20), i << 20, 1u << 20});
    const std::int64_t all_began = now_ns();
    for (std::size_t i = 0; i < shape.count && !end.down; ++i) {
      for (const std::int64_t next = now_ns() + shape.pause_ns; now_ns() < next; end.turn()) bulk.go_on(end);
      const std::int64_t begin = now_ns();
      if (shape.ping_pong) {
        end.write_and_notify(mine, i + 1);
        while ((end.messages <= i || end.arrivals <= i) && !end.down) {
          if (shape.with_bulk) bulk.go_on(end);
          end.turn();
        }
      } else {
        end.done = 0;
        for (std::size_t taken = 0; end.done < chunks.size() && !end.down;) {
          taken += end.path->submit(std::span(chunks).subspan(taken), Clock::steady().now()).taken;
          end.turn();
        }
      }
      times.push_back(static_cast<double>(now_ns() - begin));
    }
    const auto took = static_cast<double>(now_ns() - all_began);
    if (shape.with_bulk) printf("bulk beside it: %.3f GB/s\n", static_cast<double>(end.bulk_done << 20) / took);
    partner.stop();
  }
  return times;
}

/// How long a path takes from its opening until it is up, one after the other. They are dropped once all were made.
std::vector<double> run_connects(std::size_t count, std::byte* mine, std::byte* theirs, const Over& over) {
  const Partner partner([&](Board& board) { hawser_child({.name = "connects"}, board, theirs, over); });
  Board* const board = partner.board;
  std::vector<double> times;
  {
    End end(0, *board, mine, over);
    backend::PathTarget target;
    target.peer = "b";
    target.incarnation = board->incarnation[1];
    target.address = board->address;
    for (std::size_t i = 0; i < count && !end.down; ++i) {
      const std::int64_t begin = now_ns();
      target.deadline = Clock::steady().now() + std::chrono::seconds(3);
      backend::Path* const path = end.port->open_path(target, Clock::steady().now()).value();
      while (end.path != path && !end.down) end.turn();
      times.push_back(static_cast<double>(now_ns() - begin));
      end.port->release_path(path);
      end.path = nullptr;
      const std::int64_t settled = now_ns() + 2'000'000;  // The goodbye arrives.
      while (now_ns() < settled) end.turn();
    }
    partner.stop();
  }
  return times;
}

bool verify(const Shape& shape, const std::byte* mine, const std::byte* theirs) {
  const auto local = offsets(shape, 1), remote = offsets(shape, 2);
  for (std::size_t i = 0; i < shape.blocks; ++i) {
    if (std::memcmp(mine + local[i], theirs + remote[i], shape.block) != 0) return false;
  }
  return true;
}

// ---- ngtcp2 alone

#ifdef HAWSER_WITH_QUIC
/// As `raw` does, one end moves the bytes of the row, and the other end answers with one byte.
void bare_child(const Shape& shape, Board& board, std::byte* arena, std::size_t datagram) {
  pin(1);
  BareQuic end(datagram);
  board.bare_port = end.port();
  board.ready = true;
  const std::uint64_t bytes = shape.ping_pong ? 8 : shape.block * shape.blocks;
  std::uint64_t wanted = 0;
  while (!board.stop) {
    end.turn();
    if (end.streams() == 0) continue;
    const bool is_read = shape.op == Operation::kRead && !shape.ping_pong;
    if (end.came() < wanted + (is_read ? 1 : bytes)) continue;
    wanted += is_read ? 1 : bytes;
    end.send(0, {arena, is_read ? bytes : shape.ping_pong ? 8 : 1});
  }
  _exit(0);
}

std::vector<double> run_bare(const Shape& shape, std::byte* mine, std::byte* theirs, std::size_t datagram,
                             std::size_t streams) {
  const Partner partner([&](Board& board) { bare_child(shape, board, theirs, datagram); });
  Board* const board = partner.board;
  std::vector<double> times;
  {
    BareQuic end(datagram, board->bare_port);
    while (!end.is_up()) end.turn();
    end.open_streams(streams);
    const bool is_read = shape.op == Operation::kRead && !shape.ping_pong;
    const std::size_t bytes = shape.ping_pong ? 8 : shape.block * shape.blocks;
    const std::uint64_t answer = shape.ping_pong ? 8 : is_read ? bytes : 1;
    for (std::size_t i = 0; i < shape.count; ++i) {
      const std::int64_t begin = now_ns();
      const std::uint64_t wanted = end.came() + answer;
      const std::size_t share = is_read || shape.ping_pong ? 0 : bytes / streams;
      for (std::size_t k = 0; share > 0 && k < streams; ++k) {
        end.send(k, {mine + k * share, k + 1 < streams ? share : bytes - k * share});
      }
      if (share == 0) end.send(0, {mine, shape.ping_pong ? std::size_t{8} : std::size_t{1}});
      while (end.came() < wanted) end.turn();
      times.push_back(static_cast<double>(now_ns() - begin));
    }
    partner.stop();
  }
  return times;
}
#endif

// ---- GnuTLS alone

std::int64_t own_cpu_ns() {
  timespec at = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return at.tv_sec * 1'000'000'000 + at.tv_nsec;
}

/// Nanoseconds for one byte of records of 16 KiB.
struct TlsAlone {
  double slower = 0;  ///< Where one core seals and another opens.
  double sealing_cpu = 0, opening_cpu = 0;
};

TlsAlone measure_tls_alone() {
  constexpr std::size_t kBytes = 256u << 20;
  const auto open = [](tls::End end) {
    return tls::Session::open(tls::Credentials::make(tls::KeyPair::make()).value(), end).value();
  };
  const auto sealer = open(tls::End::kOpener), opener = open(tls::End::kAcceptor);
  const auto carry = [](tls::Session& from, tls::Session& to) {
    const std::size_t size = std::min(from.to_send().size(), to.room().size());
    std::memcpy(to.room().data(), from.to_send().data(), size);
    from.sent(size);
    to.came(size);
  };
  while (!sealer->is_up() || !opener->is_up()) {
    static_cast<void>(sealer->handshake()), static_cast<void>(opener->handshake());
    carry(*sealer, *opener), carry(*opener, *sealer);
  }
  std::vector<std::byte> plain(64 << 10), back(64 << 10);
  const iovec from = {plain.data(), plain.size()}, to = {back.data(), back.size()};
  std::int64_t sealing = 0, opening = 0, sealing_cpu = 0, opening_cpu = 0;
  for (std::size_t moved = 0; moved < kBytes;) {
    const std::int64_t began = now_ns(), cpu_began = own_cpu_ns();
    moved += sealer->write({&from, 1}).value();
    sealing_cpu += own_cpu_ns() - cpu_began;
    sealing += now_ns() - began;
    while (!sealer->to_send().empty()) {
      carry(*sealer, *opener);
      const std::int64_t there = now_ns(), cpu_there = own_cpu_ns();
      while (opener->read({&to, 1}).value() > 0) continue;
      opening_cpu += own_cpu_ns() - cpu_there;
      opening += now_ns() - there;
    }
  }
  const auto of_a_byte = [](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kBytes); };
  return {.slower = of_a_byte(std::max(sealing, opening)),
          .sealing_cpu = of_a_byte(sealing_cpu),
          .opening_cpu = of_a_byte(opening_cpu)};
}

// Whether the two cores share a cache: the round trip of one line.
double line_ns(Board& board) {
  constexpr std::uint64_t kRounds = 20000;
  board.line = 0;
  const pid_t child = fork();
  if (child == 0) {
    pin(1);
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      while (board.line.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      board.line.store(2 * i + 2, std::memory_order_release);
    }
    _exit(0);
  }
  std::int64_t begin = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    if (i == kRounds / 10) begin = now_ns();
    board.line.store(2 * i + 1, std::memory_order_release);
    while (board.line.load(std::memory_order_acquire) != 2 * i + 2) {
    }
  }
  const double ns = static_cast<double>(now_ns() - begin) / (0.9 * kRounds);
  waitpid(child, nullptr, 0);
  return ns;
}

/// Another way for the same bytes, encrypted.
struct Covered {
  std::string name;
  Over over;
  std::size_t bare = 0, bare_streams = 1;  ///< Beside ngtcp2 alone, with datagrams of that size.
  std::vector<double> p50 = {}, p99 = {}, ceiling = {}, bare50 = {}, bare99 = {};

  void add(const Shape& shape, std::byte* mine, std::byte* theirs, double our_p50) {
    const Quantiles its = quantiles(run_hawser(shape, mine, theirs, over));
    p50.push_back(its.p50), p99.push_back(its.p99);
    add_bare(shape, mine, theirs);
    const double bytes = shape.ping_pong ? 0 : static_cast<double>(shape.block * shape.blocks);
    if (our_p50 > 0) ceiling.push_back(our_p50 + bytes * measure_tls_alone().slower);
  }
  void add_bare([[maybe_unused]] const Shape& shape, [[maybe_unused]] std::byte* mine,
                [[maybe_unused]] std::byte* theirs) {
#ifdef HAWSER_WITH_QUIC
    if (bare == 0) return;
    const Quantiles alone = quantiles(run_bare(shape, mine, theirs, bare, bare_streams));
    bare50.push_back(alone.p50), bare99.push_back(alone.p99);
#endif
  }
  void print_bare(const Shape& shape) const {
    if (bare50.empty()) return;
    const double own = quantiles(p50).p50, its = quantiles(bare50).p50;
    printf("%-5s %-26s ngtcp2 alone, %zu streams: p50 %9.1f us p99 %9.1f  GB/s %6.2f  ngtcp2 / %s %.2f\n", "",
           shape.name.c_str(), bare_streams, its / 1e3, quantiles(bare99).p50 / 1e3,
           static_cast<double>(shape.block * shape.blocks) / its, name.c_str(), its / own);
  }
  void print_alone(const Shape& shape) const {
    const double own = quantiles(p50).p50;
    printf("%-26s %s p50 %9.1f us p99 %9.1f  GB/s %6.2f\n", shape.name.c_str(), name.c_str(), own / 1e3,
           quantiles(p99).p50 / 1e3, static_cast<double>(shape.block * shape.blocks) / own);
    print_bare(shape);
  }
  void print(const Shape& shape) const {
    const double own = quantiles(p50).p50, best = quantiles(ceiling).p50;
    printf("%-5s %-26s %s p50 %9.1f us p99 %9.1f  GB/s %6.2f  ceiling %9.1f us  ceiling / %s %.2f\n", "",
           shape.name.c_str(), name.c_str(), own / 1e3, quantiles(p99).p50 / 1e3,
           static_cast<double>(shape.block * shape.blocks) / own, best / 1e3, name.c_str(), best / own);
    print_bare(shape);
  }
};

void run_row(const Shape& shape, int rounds, Board& board, std::byte* mine, std::byte* theirs, const Over& clear,
             std::vector<Covered> covered) {
  std::vector<double> raw50, raw99, our50, our99;
  const double before = line_ns(board);
  for (int round = 0; round < rounds; ++round) {
    const Quantiles raw = quantiles(run_raw(shape, mine, theirs));
    const Quantiles ours = quantiles(run_hawser(shape, mine, theirs, clear));
    raw50.push_back(raw.p50), raw99.push_back(raw.p99), our50.push_back(ours.p50), our99.push_back(ours.p99);
    for (Covered& each : covered) each.add(shape, mine, theirs, ours.p50);
  }
  const double after = line_ns(board);
  const char* place = before < 260 && after < 260 ? "near" : before >= 260 && after >= 260 ? "far" : "moved";
  const double r50 = quantiles(raw50).p50, o50 = quantiles(our50).p50;
  const double bytes = static_cast<double>(shape.block * shape.blocks);
  const bool good = shape.ping_pong || verify(shape, mine, theirs);
  printf("%-5s %-26s raw p50 %9.1f us p99 %9.1f  hawser p50 %9.1f us p99 %9.1f  GB/s %6.2f %6.2f  ratio %.2f%s\n",
         place, shape.name.c_str(), r50 / 1e3, quantiles(raw99).p50 / 1e3, o50 / 1e3, quantiles(our99).p50 / 1e3,
         bytes / r50, bytes / o50, o50 / r50, good ? "" : "  BYTES DIFFER");
  for (const Covered& each : covered) each.print(shape);
  fflush(stdout);
}

void run_connects(std::size_t count, int rounds, std::byte* mine, std::byte* theirs, const Over& clear,
                  const std::vector<Covered>& covered) {
  for (int round = 0; round < rounds; ++round) {
    const auto print = [&](const std::string& name, const Over& over) {
      const Quantiles its = quantiles(run_connects(count, mine, theirs, over));
      printf("connect %-6s p50 %9.1f us p99 %9.1f\n", name.c_str(), its.p50 / 1e3, its.p99 / 1e3);
      fflush(stdout);
    };
    print("clear", clear);
    for (const Covered& each : covered) print(each.name, each.over);
  }
}

void run_covered(const Shape& shape, int rounds, std::byte* mine, std::byte* theirs, std::vector<Covered> covered) {
  for (int round = 0; round < rounds; ++round) {
    for (Covered& each : covered) each.add(shape, mine, theirs, 0);
  }
  for (const Covered& each : covered) each.print_alone(shape);
}

int run(int argc, char** argv) {
  int rounds = 5;
  std::string only;
  Params params, quic_params;
  bool has_tls = false, has_quic = false, is_covered_only = false;
  [[maybe_unused]] std::size_t bare = 0, bare_streams = 1;
  std::size_t connects = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--rounds") rounds = std::atoi(value.c_str());
    if (key == "--only") only = value;
    if (key == "--tls") has_tls = value != "0";
    if (key == "--quic") has_quic = value != "0";
    if (key == "--bare") bare = std::strtoul(value.c_str(), nullptr, 10);
    if (key == "--bare-streams") bare_streams = std::strtoul(value.c_str(), nullptr, 10);
    if (key == "--connects") connects = std::strtoul(value.c_str(), nullptr, 10);
    if (key == "--covered") is_covered_only = value != "0";
    if (key == "--quic-param") quic_params[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
    if (key == "--param") params[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
  }
  const Over clear = {.params = params};
  std::vector<Covered> covered;
  if (has_tls && !is_covered_only) {
    const TlsAlone alone = measure_tls_alone();
    printf("TLS alone, processor time of a byte: sealing %.3f ns, opening %.3f ns\n", alone.sealing_cpu,
           alone.opening_cpu);
  }
  if (has_tls) covered.push_back({.name = "tls", .over = {.params = params, .security = Security::kEncrypt}});
#ifdef HAWSER_WITH_QUIC
  // Without a card both ends open to everybody: that costs one round trip more, once.
  if (has_quic) {
    covered.push_back({.name = "quic",
                       .over = {.factory = backend::quic_factory(), .params = quic_params, .security = Security::kNone},
                       .bare = bare,
                       .bare_streams = bare_streams});
  }
#else
  if (has_quic) fprintf(stderr, "this build has no QUIC\n");
#endif
  pin(0);
  std::byte* mine = map_shared(kArena);
  std::byte* theirs = map_shared(kArena);
  auto* board = new (map_shared(sizeof(Board))) Board();
  base::Rng rng(3);
  for (std::size_t i = 0; i < kArena; i += 8) *reinterpret_cast<std::uint64_t*>(mine + i) = rng.u64();
  if (connects > 0) {
    run_connects(connects, rounds, mine, theirs, clear, covered);
    return 0;
  }
  std::vector<Shape> shapes = {
      {.name = "8 B ping-pong", .count = 20000, .ping_pong = true},
      {.name = "8 B write", .count = 20000},
      {.name = "8 B read", .op = Operation::kRead, .count = 20000},
      {.name = "8 B ping-pong beside bulk", .count = 3000, .ping_pong = true, .with_bulk = true},
      {.name = "8 B each millisecond beside bulk",
       .count = 500,
       .ping_pong = true,
       .with_bulk = true,
       .pause_ns = 1'000'000},
      {.name = "8 B each 10 ms beside bulk", .count = 60, .ping_pong = true, .with_bulk = true, .pause_ns = 10'000'000},
  };
  for (const Operation op : {Operation::kWrite, Operation::kRead}) {
    const std::string verb = op == Operation::kWrite ? "write " : "read ";
    shapes.push_back({.name = verb + "64 KiB", .op = op, .block = 64 << 10, .count = 2000});
    shapes.push_back({.name = verb + "1 MiB", .op = op, .block = 1 << 20, .count = 300});
    shapes.push_back({.name = verb + "64 MiB", .op = op, .block = 64 << 20, .count = 8});
    shapes.push_back({.name = verb + "1000 x 4 KiB", .op = op, .block = 4 << 10, .blocks = 1000, .count = 60});
    shapes.push_back({.name = verb + "1000 x 16 KiB", .op = op, .block = 16 << 10, .blocks = 1000, .count = 20});
    shapes.push_back({.name = verb + "1000 x 64 KiB", .op = op, .block = 64 << 10, .blocks = 1000, .count = 8});
  }
  for (const Shape& shape : shapes) {
    if (shape.name.find(only) == std::string::npos) continue;
    if (is_covered_only) {
      run_covered(shape, rounds, mine, theirs, covered);
    } else {
      run_row(shape, rounds, *board, mine, theirs, clear, covered);
    }
  }
  return 0;
}

}  // namespace
}  // namespace hawser

int main(int argc, char** argv) { return hawser::run(argc, argv); }
