// The C ABI: directories.

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/c/objects.h"
#include "api/directory_wait.h"

namespace hawser::api {
namespace {

Status give_directory(const char* call, hawser_directory* out, Result<std::shared_ptr<Directory>> opened) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<Directory> directory, std::move(opened));
  return give_handle(call, out, std::make_unique<DirectoryObject>(std::move(directory)));
}

std::vector<std::string> endpoints_of(std::string_view text) {
  std::vector<std::string> all;
  for (;;) {
    const std::size_t comma = text.find(',');
    all.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

Result<EtcdOptions> etcd_options(const char* call, const hawser_etcd_options& given) {
  if (given.lease_ns < 0 || given.timeout_ns < 0) return invalid(call, "lease_ns or timeout_ns is negative");
  EtcdOptions options{.prefix = std::string(text_of(given.prefix)),
                      .user = std::string(text_of(given.user)),
                      .password = std::string(text_of(given.password)),
                      .ca = std::string(text_of(given.ca)),
                      .cert = std::string(text_of(given.cert)),
                      .key = std::string(text_of(given.key)),
                      .identity = std::string(text_of(given.identity))};
  if (given.endpoints != nullptr) options.endpoints = endpoints_of(given.endpoints);
  if (given.lease_ns != 0) options.lease = Duration(given.lease_ns);
  if (given.timeout_ns != 0) options.timeout = Duration(given.timeout_ns);
  return options;
}

Result<PutOptions> put_options(const char* call, const hawser_put_options* options) {
  HAWSER_TRY_ASSIGN(const hawser_put_options given, options_of(call, "hawser_put_options", options));
  constexpr std::uint32_t kFlags = HAWSER_PUT_CREATE_ONLY | HAWSER_PUT_IF_VERSION | HAWSER_PUT_TIED;
  if ((given.flags & ~kFlags) != 0) return invalid(call, "flags " + std::to_string(given.flags) + " has unknown bits");
  if (given.lease_ns < 0) return invalid(call, "lease_ns is negative");
  PutOptions with{.lease = Duration(given.lease_ns),
                  .create_only = (given.flags & HAWSER_PUT_CREATE_ONLY) != 0,
                  .tied = (given.flags & HAWSER_PUT_TIED) != 0};
  if ((given.flags & HAWSER_PUT_IF_VERSION) != 0) with.if_version = given.if_version;
  return with;
}

/// A request's key or prefix, and which of them it is.
struct KeyArgument {
  const char* text;
  const char* what;
};

/// Makes a request by `ask`, which gives a ticket.
template <typename Ask>
Status request(const char* call, hawser_directory directory, KeyArgument key, uint64_t* ticket, Ask ask) {
  HAWSER_TRY(not_null(call, key.text, key.what));
  HAWSER_TRY(not_null(call, ticket, "ticket"));
  HAWSER_TRY_ASSIGN(const auto its, find<DirectoryObject>(call, directory));
  *ticket = ask(*its->directory);
  return {};
}

/// One block of malloc that begins with the entries and goes on with their texts.
class EventBlock {
 public:
  EventBlock(const DirectoryEvent& event, const std::string& text) {
    std::size_t bytes = text.size() + 1;
    for (const DirectoryEntry& entry : event.entries) bytes += entry.key.size() + entry.value.size() + 2;
    const std::size_t table = event.entries.size() * sizeof(hawser_directory_entry);
    entries_ = static_cast<hawser_directory_entry*>(std::malloc(table + bytes));
    if (entries_ == nullptr) throw std::bad_alloc();
    end_ = reinterpret_cast<char*>(entries_) + table;
    std::size_t count = 0;
    for (const DirectoryEntry& entry : event.entries) {
      const hawser_directory_entry one{.key = keep(entry.key),
                                       .key_size = entry.key.size(),
                                       .value = keep(entry.value),
                                       .value_size = entry.value.size(),
                                       .version = entry.version};
      entries_[count++] = one;
    }
    text_ = keep(text);
  }
  const hawser_directory_entry* entries() const { return entries_; }
  const char* text() const { return text_; }

 private:
  const char* keep(const std::string& bytes) {
    char* const at = end_;
    std::memcpy(at, bytes.c_str(), bytes.size() + 1);
    end_ += bytes.size() + 1;
    return at;
  }
  hawser_directory_entry* entries_ = nullptr;
  char* end_ = nullptr;
  const char* text_ = nullptr;
};

Status await_event(const char* call, hawser_directory directory, std::uint64_t ticket, std::int64_t timeout_ns,
                   hawser_directory_event* out) {
  HAWSER_TRY_ASSIGN(const auto its, find<DirectoryObject>(call, directory));
  // Checked first: nothing is taken that cannot be given.
  HAWSER_TRY(give(call, "hawser_directory_event", out, hawser_directory_event{}));
  const Instant deadline = Clock::steady().now() + timeout_of(timeout_ns);
  const std::optional<DirectoryEvent> event = next_event(*its->directory, ticket, deadline);
  if (!event) return {};
  const EventBlock block(*event, event->status.ok() ? std::string() : event->status.to_string());
  return give(call, "hawser_directory_event", out,
              hawser_directory_event{.present = 1,
                                     .kind = static_cast<std::uint32_t>(event->kind),
                                     .code = static_cast<std::int32_t>(event->status.code()),
                                     .entries = block.entries(),
                                     .count = event->entries.size(),
                                     .text = block.text()});
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_directory_inproc(const char* name, hawser_directory* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    return give_directory(call, out, inproc_directory(name == nullptr ? "default" : name));
  });
}

int hawser_directory_folder(const char* path, hawser_directory* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, path, "path"));
    HAWSER_TRY(not_null(call, out, "out"));
    return give_directory(call, out, file_directory(path));
  });
}

int hawser_directory_etcd(const hawser_etcd_options* options, hawser_directory* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    constexpr std::size_t kLeast = offsetof(hawser_etcd_options, identity);  // Of version 1 of the C ABI.
    HAWSER_TRY_ASSIGN(const hawser_etcd_options given, options_of(call, "hawser_etcd_options", options, kLeast));
    HAWSER_TRY_ASSIGN(EtcdOptions with, etcd_options(call, given));
    return give_directory(call, out, etcd(std::move(with)));
  });
}

int hawser_directory_put(hawser_directory directory, const char* key, const void* value, size_t size,
                         const hawser_put_options* options, uint64_t* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, value, size, "value"));
    HAWSER_TRY_ASSIGN(const PutOptions with, put_options(call, options));
    const std::string_view bytes(static_cast<const char*>(value), size);
    return request(call, directory, {key, "key"}, ticket, [&](Directory& its) { return its.put(key, bytes, with); });
  });
}

int hawser_directory_erase(hawser_directory directory, const char* key, uint64_t* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    return request(call, directory, {key, "key"}, ticket, [&](Directory& its) { return its.erase(key); });
  });
}

int hawser_directory_erase_if(hawser_directory directory, const char* key, uint64_t version, uint64_t* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    return request(call, directory, {key, "key"}, ticket,
                   [&](Directory& its) { return its.erase(key, {.if_version = version}); });
  });
}

int hawser_directory_get(hawser_directory directory, const char* key, uint64_t* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    return request(call, directory, {key, "key"}, ticket, [&](Directory& its) { return its.get(key); });
  });
}

int hawser_directory_list(hawser_directory directory, const char* prefix, uint64_t* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    return request(call, directory, {prefix, "prefix"}, ticket, [&](Directory& its) { return its.list(prefix); });
  });
}

int hawser_directory_watch(hawser_directory directory, const char* prefix, uint64_t* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    return request(call, directory, {prefix, "prefix"}, ticket, [&](Directory& its) { return its.watch(prefix); });
  });
}

int hawser_directory_wait(hawser_directory directory, uint64_t ticket, int64_t timeout_ns,
                          hawser_directory_event* out) {
  return run(__func__,
             [&](const char* call) -> Status { return await_event(call, directory, ticket, timeout_ns, out); });
}

int hawser_directory_cancel(hawser_directory directory, uint64_t ticket) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<DirectoryObject>(call, directory));
    its->directory->cancel(ticket);
    return {};
  });
}

int hawser_directory_warnings(hawser_directory directory, hawser_buffer* json) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<DirectoryObject>(call, directory));
    const nlohmann::json texts = its->directory->warnings();
    return give(call, json, texts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

int hawser_directory_release(hawser_directory directory) { return release<DirectoryObject>(__func__, directory); }

void hawser_directory_event_clear(hawser_directory_event* event) {
  if (event == nullptr || event->size < sizeof(hawser_directory_event)) return;
  std::free(const_cast<hawser_directory_entry*>(event->entries));
  *event = {.size = sizeof(hawser_directory_event)};
}
