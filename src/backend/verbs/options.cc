#include "backend/verbs/options.h"

#include "backend/params.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

constexpr Choice<std::uint8_t> kMtus[] = {{"auto", 0}, {"256", 1}, {"512", 2}, {"1024", 3}, {"2048", 4}, {"4096", 5}};
constexpr Choice<GpuDirect> kGpuDirect[] = {
    {"auto", GpuDirect::kAuto}, {"require", GpuDirect::kRequire}, {"off", GpuDirect::kOff}};
constexpr Choice<QueuePairType> kTypes[] = {
    {"auto", QueuePairType::kAuto}, {"rc", QueuePairType::kRc}, {"srd", QueuePairType::kSrd}};
constexpr std::uint64_t kNoIndex = UINT32_MAX;

std::uint8_t small(ParamReader& read, std::string_view name, std::uint8_t fallback, std::uint64_t max) {
  return static_cast<std::uint8_t>(read.count(name, fallback, {.min = 0, .max = max}));
}

void read_pair(ParamReader& read, QueuePairOptions& pair) {
  pair.send_depth = static_cast<std::uint32_t>(read.count("send_depth", pair.send_depth, {.min = 16, .max = 32768}));
  pair.sge_max = static_cast<std::uint32_t>(read.count("max_sge", pair.sge_max, {.min = 1, .max = 64}));
  pair.inline_max = static_cast<std::uint32_t>(read.size("inline", pair.inline_max, {.min = 0, .max = 1024}));
  pair.mtu = read.choice("mtu", pair.mtu, kMtus);
  pair.reads = static_cast<std::uint8_t>(read.count("rd_atomic", pair.reads, {.min = 1, .max = 128}));
  pair.timeout = small(read, "timeout", pair.timeout, 31);
  pair.retries = small(read, "retry", pair.retries, 7);
  pair.rnr_retries = small(read, "rnr_retry", pair.rnr_retries, 7);
  pair.min_rnr_timer = small(read, "min_rnr_timer", pair.min_rnr_timer, 31);
  pair.traffic_class = small(read, "traffic_class", pair.traffic_class, 255);
  pair.service_level = small(read, "service_level", pair.service_level, 15);
  pair.hop_limit = small(read, "hop_limit", pair.hop_limit, 255);
  pair.flow_label = static_cast<std::uint32_t>(read.count("flow_label", pair.flow_label, {.min = 0, .max = 0xfffff}));
  pair.pkey_index = static_cast<std::uint16_t>(read.count("pkey_index", pair.pkey_index, {.min = 0, .max = 65535}));
  pair.immediates = static_cast<std::uint32_t>(read.count("immediates", pair.immediates, {.min = 0, .max = 256}));
  pair.messages = static_cast<std::uint32_t>(read.count("messages", pair.messages, {.min = 0, .max = 256}));
}

}  // namespace

std::string_view to_string(GpuDirect mode) {
  for (const auto& [name, value] : kGpuDirect) {
    if (value == mode) return name;
  }
  return "unknown";
}

std::string_view to_string(QueuePairType type) {
  for (const auto& [name, value] : kTypes) {
    if (value == type) return name;
  }
  return "unknown";
}

Result<VerbsOptions> read_verbs_options(const Params& params) {
  VerbsOptions options;
  ParamReader read("verbs", params);
  options.devices = split(read.text("devices", ""));
  options.near = read.text("near", "");
  const std::uint64_t gid = read.count("gid_index", kNoIndex, {.min = 0, .max = kNoIndex});
  if (gid != kNoIndex) options.gid_index = static_cast<std::uint32_t>(gid);
  options.rails = read.text("rails", "any");
  options.pairs = static_cast<std::uint32_t>(read.count("pairs", options.pairs, {.min = 1, .max = 16}));
  options.stripe = read.size("stripe", options.stripe, {.min = 64 * 1024, .max = 4 << 20});
  options.window = read.size("window", options.window, {.min = 64 * 1024});
  options.connect_timeout =
      read.duration("connect_timeout", options.connect_timeout, {.min = std::chrono::milliseconds(50)});
  options.patience = read.duration("patience", options.patience, {.min = std::chrono::milliseconds(50)});
  options.relaxed_ordering = read.flag("relaxed_ordering", false);
  options.register_threads =
      static_cast<std::uint32_t>(read.count("register_threads", options.register_threads, {.min = 1, .max = 64}));
  options.gpu_direct = read.choice("gpu_direct", options.gpu_direct, kGpuDirect);
  options.queue_pair_type = read.choice("queue_pair_type", options.queue_pair_type, kTypes);
  read_pair(read, options.pair);
  for (const char* key : {"listen", "port"}) {
    const std::string value = read.text(key, "");
    if (!value.empty()) options.control[key] = value;
  }
  HAWSER_TRY(read.finish());
  options.params = read.in_force();
  options.warnings = read.warnings();
  return options;
}

}  // namespace hawser::backend::verbs
