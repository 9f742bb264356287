#include "backend/plugin/plugin_backend.h"

#include "backend/plugin/plugin_port.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kLineMax = 4096;       // Bytes of a text for people.
constexpr std::size_t kListMax = 64 * 1024;  // Bytes of all parameters, or of all warnings.

std::vector<hawser_plugin_param> params_of(const Params& params) {
  std::vector<hawser_plugin_param> all;
  for (const auto& [key, value] : params) all.push_back({text_of(key), text_of(value)});
  return all;
}

/// Keys match whatever their case, as with backends that read theirs by ParamReader.
Params lower_keys(const Params& given) {
  Params result;
  for (const auto& [key, value] : given) {
    std::string lower = key;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    result.insert_or_assign(std::move(lower), value);
  }
  return result;
}

}  // namespace

PluginBackend::PluginBackend(std::shared_ptr<const PluginLibrary> library, const Context& context)
    : library_(std::move(library)),
      identity_(context.identity),
      agent_{context.regions, context.log, context.clock,
             base::format("{}: backend {}", context.identity.name, library_->name)},
      its_identity_(identity_of(context.identity)) {}

Result<std::unique_ptr<Backend>> PluginBackend::open(std::shared_ptr<const PluginLibrary> library,
                                                     const Context& context, const Params& params) {
  std::unique_ptr<PluginBackend> backend(new PluginBackend(std::move(library), context));
  HAWSER_TRY(backend->start(context, lower_keys(params)));
  return std::unique_ptr<Backend>(std::move(backend));
}

Status PluginBackend::start(const Context& context, const Params& params) {
  const std::vector<hawser_plugin_param> list = params_of(params);
  base::Rng rng = context.rng;
  hawser_plugin_context its_context{};
  its_context.identity = &its_identity_;
  its_context.params = list.data();
  its_context.param_count = list.size();
  its_context.seed = rng.u64();
  its_context.heartbeat_ns = context.heartbeat.count();
  its_context.security = static_cast<std::uint32_t>(context.security);
  hawser_plugin_reason reason{};
  hawser_plugin_backend* made = nullptr;
  const std::uint32_t code = library_->backend.open(&agent_, &its_context, &made, &reason);
  HAWSER_TRY(status_from(*library_, code, &reason));
  if (made == nullptr) return null_handle("open");
  handle_ = made;
  hawser_plugin_traits traits = default_traits();
  library_->backend.traits(handle_, &traits);
  HAWSER_TRY_ASSIGN(traits_, traits_from(*library_, traits));
  return {};
}

PluginBackend::~PluginBackend() {
  if (handle_ != nullptr) library_->backend.close(handle_);
}

Status PluginBackend::null_handle(std::string_view call) const {
  return Status(Code::kFailed,
                base::format("plug-in {} ({}): {} gave a null handle", library_->name, library_->origin, call));
}

std::string PluginBackend::address() const {
  PluginSink sink(HAWSER_PLUGIN_ADDRESS_MAX);
  library_->backend.address(handle_, sink.get());
  if (!sink.overflowed()) return sink.text();
  HAWSER_LOG(agent_.log, kError, "{}: its address has more than {} bytes: no peer can reach it", agent_.label,
             HAWSER_PLUGIN_ADDRESS_MAX);
  return {};
}

std::string PluginBackend::readable_address() const {
  PluginSink sink(kLineMax);
  library_->backend.readable_address(handle_, sink.get());
  return sink.text();
}

Status PluginBackend::reachable(std::string_view peer_address) const {
  hawser_plugin_reason reason{};
  return status_from(*library_, library_->backend.reachable(handle_, text_of(peer_address), &reason), &reason);
}

Result<std::string> PluginBackend::add_region(const RegionEntry& region) {
  PluginSink extra(HAWSER_PLUGIN_ADDRESS_MAX);
  hawser_plugin_reason reason{};
  const hawser_plugin_region its_region = region_of(region);
  const std::uint32_t code = library_->backend.add_region(handle_, &its_region, extra.get(), &reason);
  HAWSER_TRY(status_from(*library_, code, &reason));
  if (!extra.overflowed()) return extra.text();
  remove_region(region);
  return Status(Code::kFailed, base::format("plug-in {} ({}): add_region gave more than {} bytes for the card",
                                            library_->name, library_->origin, HAWSER_PLUGIN_ADDRESS_MAX));
}

void PluginBackend::remove_region(const RegionEntry& region) {
  const hawser_plugin_region its_region = region_of(region);
  library_->backend.remove_region(handle_, &its_region);
}

Result<std::unique_ptr<Port>> PluginBackend::open_port() {
  hawser_plugin_reason reason{};
  hawser_plugin_port* made = nullptr;
  HAWSER_TRY(status_from(*library_, library_->backend.open_port(handle_, &made, &reason), &reason));
  if (made == nullptr) return null_handle("open_port");
  return std::unique_ptr<Port>(new PluginPort(library_, made, identity_, agent_.log));
}

Params PluginBackend::take_params() {
  PluginSink sink(kListMax);
  library_->backend.params(handle_, sink.get());
  const std::vector<std::string> items = sink.take_items();
  Params all;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) all.insert_or_assign(items[i], items[i + 1]);
  return all;
}

std::vector<std::string> PluginBackend::warnings() const {
  PluginSink sink(kListMax);
  library_->backend.warnings(handle_, sink.get());
  return sink.take_items();
}

}  // namespace hawser::backend
