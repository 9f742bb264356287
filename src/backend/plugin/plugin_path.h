#pragma once

// PluginPath: a path of a plug-in, as the agent sees any other. What it may believe of the plug-in, and what it does
// when that breaks the rules, is its port's business (plugin_port.h).
//
// Thread rule: confined to the lane. Lifetime: owned by its port; lives until release_path, also when the plug-in's is
// gone.

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "backend/plugin/plugin_values.h"

namespace hawser::backend {

class PluginPort;

class PluginBinding final : public Binding {
 public:
  explicit PluginBinding(hawser_plugin_binding* its_handle) : handle(its_handle) {}
  hawser_plugin_binding* const handle;
};

class PluginPath final : public Path {
 public:
  enum class Life : std::uint8_t {
    kOpening,  ///< By this agent; neither up nor down was reported.
    kUp,
    kDown,     ///< Reported; the plug-in's handle waits for its release.
    kRefused,  ///< To be taken from the plug-in; its events are passed over.
    kGone,     ///< The plug-in's handle is released.
  };

  PluginPath(PluginPort& port, hawser_plugin_path* handle, std::string peer)
      : port_(port), handle_(handle), peer_name_(std::move(peer)) {}

  PathState state() const override;
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
  void cancel(std::uint64_t transfer) override;
  PathCounters counters() const override;
  std::string describe() const override;

 private:
  friend class PluginPort;
  bool works() const { return life_ == Life::kUp; }

  PluginPort& port_;
  hawser_plugin_path* const handle_;
  Life life_ = Life::kOpening;
  bool is_known_ = true;         ///< To the agent: it opened it, or heard that it is up.
  std::uint32_t in_flight_ = 0;  ///< Chunks.
  std::string peer_name_;
  Identity peer_;  ///< Once it is up.
  base::Id128 session_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PluginBinding>> bindings_;  ///< By generation and index.
};

}  // namespace hawser::backend
