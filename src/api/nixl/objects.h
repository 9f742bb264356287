#pragma once

// The small objects of the NIXL face: lists, maps and options that clients fill and read.
//
// Thread rule: each belongs to one thread at a time, as in NIXL. Lifetime: what is lent ("borrowed") lives as long as
// the object that lends it is unchanged.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "api/handles.h"
#include "api/nixl/nixl_capi.h"

namespace hawser::nixl {

using Texts = std::map<std::string, std::string>;

struct Desc {
  std::uint64_t addr = 0, len = 0, dev = 0;
};

struct Params final : api::Object {
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::string_view kName = "parameter";
  Texts texts;
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
  std::vector<nixl_capi_mem_type_t> all;
};

struct BackendHandle final : api::Object {
  static constexpr std::uint8_t kKind = 5;
  static constexpr std::string_view kName = "backend";
  std::string name;
  const void* agent = nullptr;  ///< Whose it is; compared only.
};

struct OptArgs final : api::Object {
  static constexpr std::uint8_t kKind = 6;
  static constexpr std::string_view kName = "optional arguments";
  std::vector<std::string> backends;
  std::string notif, custom;
  std::optional<std::string> ip_addr;
  std::uint16_t port = 0;
  bool has_notif = false, skip_desc_merge = false;
};

struct XferDlist final : api::Object {
  static constexpr std::uint8_t kKind = 7;
  static constexpr std::string_view kName = "transfer descriptor list";
  nixl_capi_mem_type_t type = NIXL_CAPI_MEM_UNKNOWN;
  std::vector<Desc> all;
};

struct RegDesc : Desc {
  std::string meta;
};

struct RegDlist final : api::Object {
  static constexpr std::uint8_t kKind = 8;
  static constexpr std::string_view kName = "registration descriptor list";
  nixl_capi_mem_type_t type = NIXL_CAPI_MEM_UNKNOWN;
  std::vector<RegDesc> all;
};

struct RemoteDesc : Desc {
  std::optional<std::string> agent;
};

struct RemoteDlist final : api::Object {
  static constexpr std::uint8_t kKind = 9;
  static constexpr std::string_view kName = "remote descriptor list";
  nixl_capi_mem_type_t type = NIXL_CAPI_MEM_UNKNOWN;
  std::vector<RemoteDesc> all;
};

struct NotifMap final : api::Object {
  static constexpr std::uint8_t kKind = 10;
  static constexpr std::string_view kName = "notification map";
  std::map<std::string, std::vector<std::string>, std::less<>> all;
};

struct RespList final : api::Object {
  static constexpr std::uint8_t kKind = 11;
  static constexpr std::string_view kName = "query response list";
  std::vector<std::optional<Texts>> all;
};

}  // namespace hawser::nixl
