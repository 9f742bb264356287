#pragma once

// Values on their way across the border of a plug-in, in both directions. What comes from there is checked here.
//
// Thread rule: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/plugin.h>
#include <hawser/status.h>

#include "backend/backend.h"

namespace hawser::backend {

/// A plug-in that was loaded and whose tables were checked. Immutable; its code stays until the process ends.
struct PluginLibrary {
  std::string name;    ///< Of the backend.
  std::string origin;  ///< Its file, for errors.
  int default_rank = 0;
  hawser_plugin_backend_api backend{};
  hawser_plugin_port_api port{};
  hawser_plugin_path_api path{};
};

inline hawser_plugin_text text_of(std::string_view text) { return {text.data(), text.size()}; }
inline hawser_plugin_text text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline hawser_plugin_id id_of(const base::Id128& id) { return {id.hi, id.lo}; }
inline base::Id128 id_from(const hawser_plugin_id& id) { return {id.hi, id.lo}; }

hawser_plugin_region region_of(const RegionEntry& entry);
hawser_plugin_remote_region remote_region_of(const RemoteRegionRef& region);
hawser_plugin_identity identity_of(const Identity& identity);
/// `cookie` in place of the chunk's own; `target` is the plug-in's handle.
hawser_plugin_chunk chunk_of(const Chunk& chunk, std::uint64_t cookie, hawser_plugin_binding* target);
hawser_plugin_traits default_traits();
void fill_reason(const Status& status, hawser_plugin_reason* reason);

/// Good for code 0. Numbers that mean nothing become kFailed, naming the plug-in.
Status status_from(const PluginLibrary& library, std::uint32_t code, const hawser_plugin_reason* reason);
/// kFailed when an estimate or limit makes no sense.
Result<Traits> traits_from(const PluginLibrary& library, const hawser_plugin_traits& traits);
/// kCorrupt when it cannot be a peer's, kUnsupported when its versions and ours do not meet.
Result<Identity> identity_from(const hawser_plugin_identity& identity, const Identity& ours);

/// Takes text from a plug-in during one call, up to a bound.
class PluginSink {
 public:
  explicit PluginSink(std::size_t bytes_max) : left_(bytes_max) {}
  PluginSink(const PluginSink&) = delete;
  PluginSink& operator=(const PluginSink&) = delete;

  const hawser_plugin_sink* get() { return &sink_; }
  /// More came than there was room for; what is here is a part.
  bool overflowed() const { return overflowed_; }
  std::string text() const;
  std::vector<std::string> take_items() { return std::move(items_); }

 private:
  static void put(void* to, const char* data, std::size_t size) noexcept;

  const hawser_plugin_sink sink_{this, &PluginSink::put};
  std::vector<std::string> items_;
  std::size_t left_;
  bool overflowed_ = false;
};

}  // namespace hawser::backend
