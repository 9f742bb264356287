#pragma once

// LentWrites: what services of this agent write into memory that peers have lent them (agent/engine/lent_memory.h). A
// write goes in chunks over the path for messages, from memory that need not be registered, and ends where that path
// does: whoever began it finds another way.
//
// Thread rule: confined to the lane. Lifetime: what it is made with outlives it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "agent/engine/path_index.h"
#include "agent/engine/ports.h"
#include "agent/engine/session_table.h"
#include "agent/service.h"
#include "agent/session.h"
#include "wire/lent.h"

namespace hawser::agent {

class LentWrites {
 public:
  LentWrites(SessionTable& sessions, Ports& ports, PathIndex& paths)
      : sessions_(sessions), ports_(ports), paths_(paths) {}

  /// 0: no path quits at once now, or it refuses. `cookie` is what the service calls the write.
  std::uint64_t begin(Service& service, Session& session, const wire::Lent& lent, std::uint64_t size, Priority priority,
                      std::uint64_t cookie);
  /// Sends `bytes` as what the write has at `offset`. Service::on_written tells when they are there.
  LentWrite write(std::uint64_t number, std::uint64_t offset, std::span<const std::byte> bytes, Instant now);
  /// From now on no byte of it is read any more, and nothing is told of it.
  void end(std::uint64_t number);

  /// Whether this chunk is one of a lent write.
  static bool is_its(std::uint64_t cookie) { return (cookie & kCookieBit) != 0; }
  void on_chunk_done(const backend::PortEvent& event);
  /// The session's paths were released: they end chunks without a word.
  void on_paths_gone(Session& session);

 private:
  static constexpr std::uint64_t kCookieBit = std::uint64_t{1} << 63;

  struct Write {
    Service* service = nullptr;
    Session* session = nullptr;
    std::uint64_t path_serial = 0;
    wire::Lent lent;
    backend::Binding* binding = nullptr;
    std::uint64_t cookie = 0;
    Priority priority = Priority::kBulk;
    std::uint32_t chunks = 0;  ///< Under way.
    bool is_over = false;      ///< Its service waits no more.
  };
  struct Chunk {
    std::uint64_t write = 0;
    backend::Piece piece;
  };

  void drop(std::uint64_t number, Write& write);
  PathEntry* path_of(Write& write);

  SessionTable& sessions_;
  Ports& ports_;
  PathIndex& paths_;
  std::unordered_map<std::uint64_t, Write> writes_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> chunks_;  ///< By their cookies.
  std::uint64_t next_write_ = 1, next_chunk_ = 1;
};

}  // namespace hawser::agent
