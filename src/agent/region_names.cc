#include "agent/region_names.h"

#include "wire/limits.h"

namespace hawser::agent {

Status RegionNames::take(std::string_view call, Entries entries, std::size_t* wrong) {
  if (entries.size() == 1 && entries.front()->name.empty()) return {};  // Most have none.
  const base::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i]->name;
    if (name.empty()) continue;
    const bool is_long = name.size() > wire::kNameMax;
    if (!is_long && (!entries[i]->listed || names_.insert(name).second)) continue;
    *wrong = i;
    drop_listed(entries.first(i));
    if (is_long) {
      return Status(Code::kInvalid, std::string(call) + ": the name has " + std::to_string(name.size()) +
                                        " bytes; at most 255 are allowed");
    }
    return Status(Code::kInvalid, std::string(call) + ": there is a region '" + name + "' already")
        .with_advice("names of listed regions are unique in an agent; register the memory under another name or none");
  }
  return {};
}

void RegionNames::give_back(Entries entries) {
  const base::MutexLock lock(mutex_);
  drop_listed(entries);
}

void RegionNames::drop_listed(Entries entries) {
  for (const auto& entry : entries) {
    if (entry->listed) drop(entry->name);
  }
}

void RegionNames::give_back(const std::string& name) {
  if (name.empty()) return;
  const base::MutexLock lock(mutex_);
  drop(name);
}

}  // namespace hawser::agent
