#include "agent/region_names.h"

#include "wire/limits.h"

namespace hawser::agent {

Status RegionNames::take(std::string_view call, Entries entries, std::size_t* wrong) {
  const base::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i]->name;
    if (name.empty()) continue;
    const bool is_long = name.size() > wire::kNameMax;
    if (!is_long && names_.insert(name).second) continue;
    *wrong = i;
    for (const auto& taken : entries.first(i)) drop(taken->name);
    if (is_long) {
      return Status(Code::kInvalid, std::string(call) + ": the name has " + std::to_string(name.size()) +
                                        " bytes; at most 255 are allowed");
    }
    return Status(Code::kInvalid, std::string(call) + ": there is a region '" + name + "' already")
        .with_advice("names are unique in an agent; the same memory may be registered again under another or no name");
  }
  return {};
}

void RegionNames::give_back(Entries entries) {
  const base::MutexLock lock(mutex_);
  for (const auto& entry : entries) drop(entry->name);
}

void RegionNames::give_back(const std::string& name) {
  const base::MutexLock lock(mutex_);
  drop(name);
}

}  // namespace hawser::agent
