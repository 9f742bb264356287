#pragma once

// PluginPort: a plug-in's port with its paths, as the agent sees any other.
//
// Nothing that the plug-in answers is believed. Chunks go to it under cookies of this port, so that a wrong or second
// end finds no chunk. An answer that no honest plug-in gives (an unknown handle, more events than there was room for)
// is a fault: all paths are taken from the plug-in by release_path, their chunks end with kFailed, and the port stays
// dead. What may be the peer's doing (a name that is none, a message too long) ends that path only.
//
// Faults are noticed inside of calls and acted upon in the next one, when no memory of the plug-in is being read.
//
// Thread rule: confined to the lane. Lifetime: owns its paths; the plug-in's library outlives it.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/plugin/plugin_path.h"
#include "backend/plugin/plugin_values.h"
#include "base/slot_table.h"

namespace hawser::backend {

class PluginPort final : public Port {
 public:
  static constexpr std::uint32_t kChunksMax = 1u << 16;  ///< In flight; beyond it submit takes none.
  static constexpr std::size_t kPathsMax = 1u << 16;     ///< Inbound ones beyond it are refused.
  static constexpr std::size_t kEventsAtOnce = 64;

  /// Takes the handle over. `identity` and `log` outlive the port.
  PluginPort(std::shared_ptr<const PluginLibrary> library, hawser_plugin_port* handle, const Identity& identity,
             const base::Logger& log);
  ~PluginPort() override { library_->port.close(handle_); }

  Result<Path*> open_path(const PathTarget& target, Instant now) override;
  void release_path(Path* path) override;
  std::size_t turn(Instant now, const TurnBudget& budget) override;
  std::size_t poll(std::span<PortEvent> out) override;
  Instant next_deadline() const override;
  int wait_fd() const override { return library_->port.wait_fd(handle_); }
  bool prepare_sleep() override;
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  void begin_close(Instant now) override { library_->port.begin_close(handle_, now.ns()); }
  bool idle() const override;
  /// A plug-in tells no more than which paths are not up yet, or hold chunks though they are down.
  void describe(const WaitVisitor& visitor) const override;

 private:
  friend class PluginPath;
  struct Sent {
    PluginPath* path = nullptr;
    std::uint64_t cookie = 0;  ///< The agent's.
  };

  Submitted submit(PluginPath& path, std::span<const Chunk> chunks, Instant now);
  void forget(base::SlotId id);
  bool is_faulty() const { return !fault_.ok(); }
  void fault(std::string what);
  void refuse(PluginPath& path, const Status& why);
  void settle();
  void end(PluginPath& path, const Status& why);
  void push_down(PluginPath& path, const Status& why);
  PluginPath& add(hawser_plugin_path* handle, std::string peer);
  void erase(PluginPath& path);

  PluginPath* path_of(const hawser_plugin_event& raw);
  bool take(const hawser_plugin_event& raw, PortEvent* out);
  bool take_chunk_done(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out);
  bool take_message(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out);
  bool take_path_up(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out);
  bool take_path_down(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out);

  const std::shared_ptr<const PluginLibrary> library_;
  hawser_plugin_port* const handle_;
  const Identity& identity_;
  const base::Logger& log_;
  Status fault_;
  std::unordered_map<const Path*, std::unique_ptr<PluginPath>> paths_;
  std::unordered_map<const hawser_plugin_path*, PluginPath*> by_handle_;  ///< Those that the plug-in has.
  base::SlotTable<Sent> sent_;
  std::deque<PortEvent> own_;                             ///< Events that this port adds.
  std::vector<std::pair<PluginPath*, Status>> refusals_;  ///< To be acted upon.
  std::vector<hawser_plugin_chunk> offered_;              ///< Room for submit.
  std::array<hawser_plugin_event, kEventsAtOnce> raw_{};  ///< Zero between polls.
};

}  // namespace hawser::backend
