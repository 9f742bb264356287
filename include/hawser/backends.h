#pragma once

// Which backends an agent opens, by name and string parameters. Names are case-insensitive.

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN

using Params = std::map<std::string, std::string, std::less<>>;

struct BackendSpec {
  std::string name = {};  ///< shm, tcp, verbs, loopback, file, sim, or a plug-in's.
  Params params = {};     ///< Overlay the backend's defaults; unknown keys warn.
};

inline BackendSpec shm(Params params = {}) { return {"shm", std::move(params)}; }
inline BackendSpec tcp(Params params = {}) { return {"tcp", std::move(params)}; }
inline BackendSpec verbs(Params params = {}) { return {"verbs", std::move(params)}; }
inline BackendSpec file(Params params = {}) { return {"file", std::move(params)}; }
inline BackendSpec loopback(Params params = {}) { return {"loopback", std::move(params)}; }

/// How one backend of an agent fared.
struct BackendReport {
  std::string name;
  bool open = false;
  Status cause;   ///< Why it is not open.
  Params params;  ///< In force, defaults included.
  std::vector<std::string> warnings;
  std::string address;  ///< Readable: what it listens on.
};

HAWSER_NAMESPACE_END
