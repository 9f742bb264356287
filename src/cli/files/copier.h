#pragma once

// Copier: moves files between this host and a file server, chunk by chunk, several at a time. An incomplete file is
// called NAME.part; chunks of it that have the sum of the source's are kept, so a broken copy goes on where it stopped.
//
// Thread rule: one thread calls; it starts others for the time of a copy. Lifetime: agent and peer outlive it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hawser/agent.h>

#include "cli/files/calls.h"
#include "cli/files/chunk_io.h"

namespace hawser::cli {

struct CopyTotals {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t bytes_kept = 0;  ///< Those among them that a .part file had already.
};

struct RemoteFile {
  std::string path;
  std::uint64_t size = 0;
};

class Copier {
 public:
  static constexpr std::size_t kWindow = 8;  ///< Chunks under way.

  /// Greets the server. `progress` is called, by one thread at a time, with all bytes that are in place.
  static Result<std::unique_ptr<Copier>> open(Agent& agent, const Peer& peer, Duration timeout,
                                              std::function<void(std::uint64_t)> progress);

  Result<Json> stat(const std::string& path);
  /// All files beneath a folder of the server, by their paths within it.
  Result<std::vector<RemoteFile>> list(const std::string& path);
  Status fetch(const std::string& remote, const std::string& local);
  Status send(const std::string& local, const std::string& remote);
  const CopyTotals& totals() const { return totals_; }

 private:
  using ChunkMover = std::function<Status(std::uint64_t offset, std::uint64_t size, std::size_t slot)>;

  Copier(Agent& agent, const Peer& peer, Duration timeout, Region window, std::function<void(std::uint64_t)> progress);
  Status hello();
  /// Calls `move` for each chunk of a file, kWindow at a time; the first error ends it.
  Status for_chunks(std::uint64_t size, const ChunkMover& move);
  std::span<std::byte> slot(std::size_t number, std::uint64_t size) const {
    return window_.bytes().subspan(number * kFileChunk, static_cast<std::size_t>(size));
  }

  Agent& agent_;
  Calls calls_;
  Region window_;
  const std::function<void(std::uint64_t)> progress_;
  std::atomic<std::uint64_t> in_place_{0}, kept_{0};
  CopyTotals totals_;
};

}  // namespace hawser::cli
