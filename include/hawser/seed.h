#pragma once

// A seed is an agent where the ranks of a world on several hosts find one another: each leaves its card there and reads
// the cards of the others. It needs neither a shared folder nor an etcd.
//
// The address of a seed holds a ticket, unless the ranks have a token (WorldOptions::token_file), and the seed admits
// only agents that prove it (see Agent::ticket): treat the address as a password. Between hosts the ranks and the seed
// speak TLS. A seed keeps values until it is closed: 65,536 keys, 60 KiB a value, 64 MiB in all.
//
// A rank's number belongs to the first process that leaves its card there, until that process is gone from the seed.
// World::open of a second one with that number is kDenied, and the error names both. A process has one number in a
// world.
//
// Thread rule: thread-safe; a thread of its own serves. Lifetime: closing ends the waits of its clients.

#include <memory>
#include <string>

#include <hawser/agent.h>
#include <hawser/export.h>
#include <hawser/status.h>

namespace hawser::runtime {
class SeedServer;
}

HAWSER_NAMESPACE_BEGIN

class HAWSER_API WorldSeed {
 public:
  WorldSeed() = default;
  WorldSeed(WorldSeed&&) noexcept;
  WorldSeed& operator=(WorldSeed&&) noexcept;
  ~WorldSeed();

  /// Listens at all addresses of the host, unless `options` say otherwise. A nameless one is called "seed".
  /// `token_file`: as WorldOptions::token_file. With it the seed serves only ranks that prove the same token, and its
  /// address holds no secret: any agent that has the token can be typed HOST:PORT. Errors: those of Agent::open, and of
  /// the token: kNotFound, kDenied (others may read the file), kInvalid (too short, or not random).
  static Result<WorldSeed> open(AgentOptions options = {}, const std::string& token_file = {});
  /// For WorldOptions::seed and HAWSER_SEED: "seed@10.0.0.1:7000#TICKET". With `host` in the place of the address
  /// that it chose: the first that is not loopback.
  std::string address(const std::string& host = {}) const;

 private:
  explicit WorldSeed(std::unique_ptr<runtime::SeedServer> its);
  std::unique_ptr<runtime::SeedServer> server_;
};

HAWSER_NAMESPACE_END
