#pragma once

// PluginBackend: a backend of a plug-in, as the agent sees any other.
//
// Thread rule: as Backend. Lifetime: its port dies before it; the context's references outlive it.

#include <memory>
#include <string>
#include <vector>

#include "backend/plugin/plugin_host.h"
#include "backend/plugin/plugin_values.h"

namespace hawser::backend {

class PluginBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> open(std::shared_ptr<const PluginLibrary> library, const Context& context,
                                               const Params& params);
  ~PluginBackend() override;

  const Traits& traits() const override { return traits_; }
  std::string address() const override;
  std::string readable_address() const override;
  Status reachable(std::string_view peer_address) const override;
  Result<std::string> add_region(const RegionEntry& region) override;
  void remove_region(const RegionEntry& region) override;
  Result<std::unique_ptr<Port>> open_port() override;
  Params take_params() override;
  std::vector<std::string> warnings() const override;
  void disown_after_fork() override { library_->backend.disown_after_fork(handle_); }

 private:
  PluginBackend(std::shared_ptr<const PluginLibrary> library, const Context& context);
  Status start(const Context& context, const Params& params);
  Status null_handle(std::string_view call) const;

  const std::shared_ptr<const PluginLibrary> library_;
  const Identity& identity_;
  hawser_plugin_agent agent_;
  hawser_plugin_identity its_identity_;
  hawser_plugin_backend* handle_ = nullptr;
  Traits traits_;
};

}  // namespace hawser::backend
