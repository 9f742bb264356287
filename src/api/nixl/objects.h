#pragma once

// Objects behind handles of the NIXL face: agents, prepared lists and requests of the compat layer, and small lists,
// maps and options that clients fill and read.
//
// Thread rule: the small ones belong to one thread at a time, as in NIXL. Lifetime: what is lent ("borrowed") lives as
// long as the object that lends it is unchanged.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/compat/agent.h>

#include "api/handles.h"
#include "api/nixl/nixl_capi.h"

namespace hawser::nixl {

struct ParamsObject final : api::Object {
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::string_view kName = "parameter";
  hawser::Params texts;
};

struct ParamIter final : api::Object {
  static constexpr std::uint8_t kKind = 2;
  static constexpr std::string_view kName = "parameter iterator";
  std::vector<std::pair<std::string, std::string>> all;
  std::size_t next = 0;
};

struct StringList final : api::Object {
  static constexpr std::uint8_t kKind = 3;
  static constexpr std::string_view kName = "string list";
  std::vector<std::string> all;
};

struct MemList final : api::Object {
  static constexpr std::uint8_t kKind = 4;
  static constexpr std::string_view kName = "memory type list";
  std::vector<compat::MemType> all;
};

struct BackendHandle final : api::Object {
  static constexpr std::uint8_t kKind = 5;
  static constexpr std::string_view kName = "backend";
  explicit BackendHandle(compat::Backend its) : backend(std::move(its)) {}
  compat::Backend backend;
};

struct OptArgs final : api::Object {
  static constexpr std::uint8_t kKind = 6;
  static constexpr std::string_view kName = "optional arguments";
  compat::OptArgs args;
  std::string notif;  ///< Set, but a notification only with has_notif.
  bool has_notif = false;

  void update() { args.notification = has_notif ? std::optional(notif) : std::nullopt; }
};

struct XferDlist final : api::Object {
  static constexpr std::uint8_t kKind = 7;
  static constexpr std::string_view kName = "transfer descriptor list";
  explicit XferDlist(compat::MemType type) : list(type) {}
  compat::XferDescList list;
};

struct RegDlist final : api::Object {
  static constexpr std::uint8_t kKind = 8;
  static constexpr std::string_view kName = "registration descriptor list";
  explicit RegDlist(compat::MemType type) : list(type) {}
  compat::RegDescList list;
};

struct RemoteDesc : compat::Desc {
  std::optional<std::string> agent;
};

struct RemoteDlist final : api::Object {
  static constexpr std::uint8_t kKind = 9;
  static constexpr std::string_view kName = "remote descriptor list";
  explicit RemoteDlist(compat::MemType its_type) : type(its_type) {}
  const compat::MemType type;
  std::vector<RemoteDesc> all;
};

struct NotifMap final : api::Object {
  static constexpr std::uint8_t kKind = 10;
  static constexpr std::string_view kName = "notification map";
  compat::NotificationMap all;
};

struct RespList final : api::Object {
  static constexpr std::uint8_t kKind = 11;
  static constexpr std::string_view kName = "query response list";
  compat::QueryResponses all;
};

struct AgentHandle final : api::Object {
  static constexpr std::uint8_t kKind = 20;
  static constexpr std::string_view kName = "agent";
  explicit AgentHandle(compat::Agent its) : agent(std::move(its)) {}
  compat::Agent agent;
};

struct PreparedHandle final : api::Object {
  static constexpr std::uint8_t kKind = 21;
  static constexpr std::string_view kName = "prepared list";
  explicit PreparedHandle(compat::PreparedList its) : list(std::move(its)) {}
  const compat::PreparedList list;
};

struct RequestHandle final : api::Object {
  static constexpr std::uint8_t kKind = 22;
  static constexpr std::string_view kName = "request";
  RequestHandle(compat::TransferRequest its, std::uint64_t its_agent) : request(std::move(its)), agent(its_agent) {}
  /// Notes its agent's handle while a look would say that it is finished.
  void placed(api::Note& note) override { request.mirror_finished(&note, agent); }
  compat::TransferRequest request;
  const std::uint64_t agent;
};

}  // namespace hawser::nixl
