// Registered memory.

#include <set>

#include "base/format.h"
#include "base/try.h"
#include "compat/core.h"
#include "compat/file_descs.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kCloseTimeout = std::chrono::seconds(2);

RegionOptions region_options(MemType type, const RegDesc& desc) {
  RegionOptions options{.bytes = {reinterpret_cast<std::byte*>(desc.addr), desc.len}};
  if (type == MemType::kVram) {
    options.device = {.kind = DeviceKind::kCuda, .ordinal = static_cast<std::uint32_t>(desc.dev)};
  }
  return options;
}

/// The descriptor as the book knows it.
Desc book_desc(MemType type, const Desc& desc) { return type == MemType::kFile ? file_range(desc) : desc; }

}  // namespace

Result<Region> AgentCore::add_region(std::string_view call, MemType type, const RegDesc& desc,
                                     std::set<std::uint64_t>* opening) {
  if (type != MemType::kFile) return agent_->add_region(region_options(type, desc));
  // Such a number stands for one file: without it two files could not be told apart.
  if (is_path_mode(desc.meta) && (book_.has_device(type, desc.dev) || !opening->insert(desc.dev).second)) {
    return refusal(NixlCode::kInvalidParam, call, base::format("another file is registered as device {}", desc.dev))
        .with_advice("give each path a device number of its own");
  }
  HAWSER_TRY_ASSIGN(const FileOptions options, file_options(call, desc));
  return agent_->add_file(options);
}

Status AgentCore::register_memory(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "register_mem";
  HAWSER_TRY(need_home(kCall));
  const std::lock_guard lock(mutex_);
  if (backends_.empty()) return refusal(NixlCode::kNotFound, kCall, "the agent has no backend yet");
  HAWSER_TRY_ASSIGN(const BackendMask wanted, mask_of(kCall, opt));
  BackendMask mask = 0;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if (takes(*backends_[i].plugin, list.type())) mask |= BackendMask{1} << i;
  }
  mask &= wanted;
  if (mask == 0) {
    return refusal(NixlCode::kNotFound, kCall,
                   base::format("no backend of agent '{}' takes {} memory", name_, to_string(list.type())));
  }
  std::vector<Region> made;
  std::set<std::uint64_t> opening;
  for (const RegDesc& desc : list) {
    Result<Region> region = add_region(kCall, list.type(), desc, &opening);
    // All or nothing: those made before close themselves.
    if (!region) {
      const bool is_wrong = code_of(region.error()) == NixlCode::kInvalidParam && list.type() == MemType::kFile;
      return refusal(is_wrong ? NixlCode::kInvalidParam : NixlCode::kBackend, kCall,
                     base::format("descriptor {}", made.size()), region.error());
    }
    made.push_back(std::move(*region));
  }
  std::size_t at = 0;
  for (const RegDesc& desc : list) {
    Region& region = made[at++];
    const Desc known = book_desc(list.type(), desc);
    const std::uint64_t begin = list.type() == MemType::kFile ? known.addr : 0;
    book_.add(list.type(), known,
              {.len = known.len, .range = region.range(begin, known.len), .id = next_id_, .backends = mask});
    regions_.emplace(next_id_++, std::move(region));
  }
  return {};
}

Status AgentCore::deregister_memory(const RegDescList& list, const OptArgs* opt) {
  constexpr std::string_view kCall = "deregister_mem";
  HAWSER_TRY(need_home(kCall));
  std::vector<Region> closing;
  Status answer;
  {
    const std::lock_guard lock(mutex_);
    HAWSER_TRY_ASSIGN(const BackendMask mask, mask_of(kCall, opt));
    std::size_t at = 0;
    for (const RegDesc& desc : list) {
      std::optional<Book<LocalRange>::Entry> entry;
      if (!book_.take(list.type(), book_desc(list.type(), desc), mask, &entry)) {
        answer = refusal(NixlCode::kNotFound, kCall, base::format("descriptor {} is not registered (any more)", at));
      }
      ++at;
      if (!entry) continue;
      const auto region = regions_.find(entry->id);
      closing.push_back(std::move(region->second));
      regions_.erase(region);
    }
  }
  // The caller frees the memory next, so what still uses it must be over.
  const Status closed = close_all(std::move(closing), kCall);
  return answer.ok() ? closed : answer;
}

Status AgentCore::close_all(std::vector<Region> regions, std::string_view call) {
  Status answer;
  for (Region& region : regions) {
    const Status status = region.close(kCloseTimeout);
    if (!status.ok() && answer.ok()) answer = refusal(NixlCode::kBackend, call, "the memory is in use", status);
  }
  return answer;
}

Result<QueryResponses> AgentCore::query_mem(const RegDescList& list, const OptArgs* opt) const {
  constexpr std::string_view kCall = "query_mem";
  HAWSER_TRY(backends_in(kCall, opt).status());
  if (opt == nullptr || opt->backends.size() != 1) {
    return refusal(NixlCode::kInvalidParam, kCall, "the options must name exactly one backend");
  }
  const std::string& name = opt->backends.front().name();
  if (list.type() != MemType::kFile || !takes(*find_plugin(name), MemType::kFile)) {
    return refusal(NixlCode::kNotSupported, kCall,
                   base::format("{} knows nothing of {} beyond its registration", name, to_string(list.type())));
  }
  QueryResponses answers;
  for (const RegDesc& desc : list) {
    Result<std::optional<Params>> answer = query_file_desc(desc);
    if (!answer) {
      return refusal(NixlCode::kBackend, kCall, base::format("descriptor {}", answers.size()), answer.error());
    }
    answers.push_back(*std::move(answer));
  }
  return answers;
}

}  // namespace compat
HAWSER_NAMESPACE_END
