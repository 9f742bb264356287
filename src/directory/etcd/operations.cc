#include "directory/etcd/operations.h"

#include <iterator>

#include "base/format.h"
#include "directory/store.h"

namespace hawser::directory::etcd {
namespace {

/// Keys in one answer: at most 32 MiB of values as large as ours may be.
constexpr std::size_t kPage = 32;
/// Lists that are begun anew because a compaction took their revision.
constexpr int kListsMax = 3;
/// Bytes of keys and values in one listing.
constexpr std::size_t kListedMax = std::size_t{1} << 30;

Status too_much(std::string_view prefix) {
  return Status(Code::kBusy,
                base::format("etcd: more than {} keys or {} bytes under \"{}\"", kKeysMax, kListedMax, prefix))
      .with_advice("list or watch a longer prefix");
}

}  // namespace

Outcome<RangeAnswer> Operations::list(std::string_view prefix, Instant deadline) {
  const std::string end = end_of_prefix(prefix);
  Outcome<RangeAnswer> all;
  for (int tries = 0; tries < kListsMax; ++tries) {
    const bool was_away = all.reply.was_away;
    all = {};
    std::string from(prefix);
    std::size_t bytes = 0;
    bool has_more = true;
    while (has_more && all.ok()) {
      const RangeRequest page{.key = from, .end = end, .limit = kPage, .revision = all.answer.header.revision};
      Outcome<RangeAnswer> got = ask("/v3/kv/range", encode_range(page), deadline, decode_range);
      all.reply.status = got.reply.status;
      all.reply.fault = got.reply.fault;
      all.reply.was_away = all.reply.was_away || got.reply.was_away || was_away;
      if (!got.ok()) break;
      if (all.answer.header.revision == 0) all.answer.header = got.answer.header;
      for (KeyValue& entry : got.answer.entries) {
        bytes += entry.key.size() + entry.value.size();
        all.answer.entries.push_back(std::move(entry));
      }
      has_more = got.answer.has_more && !all.answer.entries.empty();
      if (has_more) from = all.answer.entries.back().key + '\0';
      if (bytes > kListedMax || all.answer.entries.size() > kKeysMax) all.reply.status = too_much(prefix);
    }
    if (all.reply.fault != Fault::kCompacted) break;
  }
  return all;
}

Outcome<LeaseAnswer> Operations::grant(Duration ttl, Instant deadline) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return ask("/v3/lease/grant", encode_grant((ttl.count() + kSecond - 1) / kSecond), deadline, decode_lease);
}

}  // namespace hawser::directory::etcd
