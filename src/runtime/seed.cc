// The door's WorldSeed.

#include <hawser/seed.h>

#include <utility>

#include "runtime/seed_server.h"

HAWSER_NAMESPACE_BEGIN

WorldSeed::WorldSeed(std::unique_ptr<runtime::SeedServer> its) : server_(std::move(its)) {}
WorldSeed::WorldSeed(WorldSeed&&) noexcept = default;
WorldSeed& WorldSeed::operator=(WorldSeed&&) noexcept = default;
WorldSeed::~WorldSeed() = default;

Result<WorldSeed> WorldSeed::open(AgentOptions options) {
  Result<std::unique_ptr<runtime::SeedServer>> server = runtime::SeedServer::open(std::move(options));
  if (!server) return server.error();
  return WorldSeed(std::move(*server));
}

std::string WorldSeed::address(const std::string& host) const {
  return server_ ? server_->address(host) : std::string();
}

HAWSER_NAMESPACE_END
