#include "backend/plugin/plugin_host.h"

#include <hawser/version.h>

#include <algorithm>
#include <cstring>

#include "backend/plugin/plugin_values.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kLogLineMax = 4096;  // Bytes of one line of a plug-in's log.

// noexcept: an exception must not cross the border, and none of these has a state that it could leave half done.

std::uint32_t region_find(hawser_plugin_agent* agent, std::uint32_t index, std::uint32_t generation,
                          hawser_plugin_id key, std::uint32_t rights, hawser_plugin_region* out,
                          hawser_plugin_reason* reason) noexcept {
  constexpr std::uint32_t kAll = HAWSER_PLUGIN_RIGHT_READ | HAWSER_PLUGIN_RIGHT_WRITE;
  if (agent == nullptr || out == nullptr || rights > kAll) {
    fill_reason(Status(Code::kInvalid, "region_find: agent or out is null, or rights are none of read, write, both"),
                reason);
    return HAWSER_PLUGIN_INVALID;
  }
  const auto found = agent->regions.find(index, generation, id_from(key), static_cast<Rights>(rights));
  if (!found) {
    const Status why = found.error();
    fill_reason(why, reason);
    return static_cast<std::uint32_t>(why.code());
  }
  *out = region_of(**found);
  return HAWSER_PLUGIN_OK;
}

int region_is_open(hawser_plugin_agent* agent, std::uint32_t index, std::uint32_t generation) noexcept {
  return agent != nullptr && agent->regions.is_open(index, generation) ? 1 : 0;
}

void random_bytes(void* out, std::size_t size) noexcept {
  auto* at = static_cast<std::byte*>(out);
  while (size > 0) {
    const base::Id128 id = base::random_id128();
    const std::size_t part = std::min(size, sizeof(id));
    std::memcpy(at, &id, part);
    at += part;
    size -= part;
  }
}

std::int64_t now_ns(hawser_plugin_agent* agent) noexcept {
  return agent == nullptr ? Clock::steady().now().ns() : agent->clock.now().ns();
}

LogLevel level_of(std::uint32_t level) {
  return level <= HAWSER_PLUGIN_LOG_ERROR ? static_cast<LogLevel>(level) : LogLevel::kError;
}

int log_enabled(hawser_plugin_agent* agent, std::uint32_t level) noexcept {
  return agent != nullptr && agent->log.enabled(level_of(level)) ? 1 : 0;
}

void log_line(hawser_plugin_agent* agent, std::uint32_t level, const char* data, std::size_t size) noexcept {
  if (agent == nullptr || data == nullptr || !agent->log.enabled(level_of(level))) return;
  agent->log.write(level_of(level), "{}: {}", agent->label, std::string_view(data, std::min(size, kLogLineMax)));
}

constexpr hawser_plugin_host kHost = {
    .size = sizeof(hawser_plugin_host),
    .abi = HAWSER_PLUGIN_ABI,
    .version = HAWSER_VERSION,
    .region_find = region_find,
    .region_is_open = region_is_open,
    .random = random_bytes,
    .now_ns = now_ns,
    .log_enabled = log_enabled,
    .log = log_line,
};

}  // namespace

const hawser_plugin_host& plugin_host() { return kHost; }

}  // namespace hawser::backend
