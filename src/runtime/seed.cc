// The door's WorldSeed.

#include <hawser/seed.h>

#include <optional>
#include <utility>

#include "base/try.h"
#include "runtime/seed_server.h"

HAWSER_NAMESPACE_BEGIN

WorldSeed::WorldSeed(std::unique_ptr<runtime::SeedServer> its) : server_(std::move(its)) {}
WorldSeed::WorldSeed(WorldSeed&&) noexcept = default;
WorldSeed& WorldSeed::operator=(WorldSeed&&) noexcept = default;
WorldSeed::~WorldSeed() = default;

Result<WorldSeed> WorldSeed::open(AgentOptions options, const std::string& token_file) {
  std::optional<identity::WorldToken> token;
  if (!token_file.empty()) {
    HAWSER_TRY_ASSIGN(token, identity::WorldToken::read(token_file));
  }
  Result<std::unique_ptr<runtime::SeedServer>> server = runtime::SeedServer::open(std::move(options), std::move(token));
  if (!server) return server.error();
  return WorldSeed(std::move(*server));
}

std::string WorldSeed::address(const std::string& host) const {
  return server_ ? server_->address(host) : std::string();
}

HAWSER_NAMESPACE_END
