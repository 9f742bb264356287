// The NIXL face: agents, plugins, memory, metadata, notifications.

#include "api/nixl/nixl_capi.h"

#include <strings.h>

#include <cstdlib>
#include <cstring>

#include "api/nixl/agent.h"

namespace hawser::nixl {
namespace {

bool is_word(const char* text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return ::strcasecmp(text, word) == 0; });
}

/// An explicit "no" in the environment beats what the client asks for, and a "yes" what it does not.
bool telemetry_wanted(bool asked) {
  const char* const text = std::getenv("NIXL_TELEMETRY_ENABLE");
  if (text == nullptr || *text == '\0') return asked;
  if (is_word(text, {"n", "no", "0", "false", "off"})) return false;
  return asked || is_word(text, {"y", "yes", "1", "true", "on"});
}

nixl_capi_status_t open_agent(const char* call, const char* name, const AgentCore::Config& config,
                              nixl_capi_agent_t* agent) {
  NIXL_NOT_NULL(name);
  NIXL_NOT_NULL(agent);
  Result<std::shared_ptr<AgentCore>> core = AgentCore::open(name, config);
  if (!core) return refuse(call, NIXL_CAPI_ERROR_BACKEND, core.error().to_string());
  return give(call, agent, std::make_unique<AgentHandle>(std::move(*core)));
}

nixl_capi_status_t give_bytes(const char* call, const std::string& bytes, void** data, size_t* len) {
  void* const copy = std::malloc(bytes.size());
  if (copy == nullptr) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "out of memory");
  std::memcpy(copy, bytes.data(), bytes.size());
  *data = copy;
  *len = bytes.size();
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t give_params(const char* call, Texts texts, nixl_capi_mem_list_t* mems, nixl_capi_params_t* params) {
  auto list = std::make_unique<MemList>();
  list->all = {NIXL_CAPI_MEM_DRAM, NIXL_CAPI_MEM_VRAM};
  auto made = std::make_unique<Params>();
  made->texts = std::move(texts);
  const nixl_capi_status_t status = give(call, mems, std::move(list));
  return status == NIXL_CAPI_SUCCESS ? give(call, params, std::move(made)) : status;
}

Texts ucx_defaults() { return {{"num_workers", "1"}, {"ucx_devices", ""}, {"ucx_error_handling_mode", "peer"}}; }

/// Metadata that Hawser is to carry by itself.
nixl_capi_status_t refuse_exchange(const char* call, nixl_capi_agent_t agent, nixl_capi_opt_args_t opt) {
  NIXL_FIND(its, AgentHandle, agent);
  bool addressed = false;
  if (opt != nullptr) {
    NIXL_FIND(args, OptArgs, opt);
    addressed = args.ip_addr.has_value();
  }
  if (!addressed) {
    return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "there is neither an address in the options nor a directory");
  }
  return refuse(call, NIXL_CAPI_ERROR_BACKEND, "not supported: carry the metadata yourself, by get_local_md");
}

nixl_capi_status_t refuse_views(const char* call, nixl_capi_agent_t agent) {
  NIXL_FIND(its, AgentHandle, agent);
  return refuse(call, NIXL_CAPI_ERROR_BACKEND, "not supported: memory views need a GPU backend");
}

}  // namespace
}  // namespace hawser::nixl

using namespace hawser;
using namespace hawser::nixl;

nixl_capi_status_t nixl_capi_create_configured_agent(const char* name, const nixl_capi_agent_config_t* cfg,
                                                     nixl_capi_agent_t* agent) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(cfg);
    if (cfg->enable_listen_thread) {
      say_warning(call, "enable_listen_thread is ignored: metadata by address is not there yet (docs/nixl.md)");
    }
    return open_agent(
        call, name, {.telemetry = telemetry_wanted(cfg->capture_telemetry), .driven = cfg->enable_prog_thread}, agent);
  });
}

nixl_capi_status_t nixl_capi_create_agent(const char* name, nixl_capi_agent_t* agent) {
  return run(__func__, [&](const char* call) {
    return open_agent(call, name, {.telemetry = telemetry_wanted(false), .driven = true}, agent);
  });
}

nixl_capi_status_t nixl_capi_destroy_agent(nixl_capi_agent_t agent) { return destroy<AgentHandle>(__func__, agent); }

nixl_capi_status_t nixl_capi_get_local_md(nixl_capi_agent_t agent, void** data, size_t* len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(len);
    std::string blob;
    const nixl_capi_status_t status = its.core->metadata(call, nullptr, &blob);
    return status == NIXL_CAPI_SUCCESS ? give_bytes(call, blob, data, len) : status;
  });
}

nixl_capi_status_t nixl_capi_get_local_partial_md(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs, void** data,
                                                  size_t* len, nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, descs);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(len);
    std::string blob;
    const nixl_capi_status_t status = its.core->metadata(call, &list, &blob);
    return status == NIXL_CAPI_SUCCESS ? give_bytes(call, blob, data, len) : status;
  });
}

nixl_capi_status_t nixl_capi_load_remote_md(nixl_capi_agent_t agent, const void* data, size_t len, char** agent_name) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(agent_name);
    if (len == 0) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the metadata is empty");
    std::string name;
    const nixl_capi_status_t status = its.core->load(call, {static_cast<const char*>(data), len}, &name);
    if (status != NIXL_CAPI_SUCCESS) return status;
    char* const copy = ::strdup(name.c_str());
    if (copy == nullptr) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "out of memory");
    *agent_name = copy;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_invalidate_remote_md(nixl_capi_agent_t agent, const char* remote_agent) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_agent);
    return its.core->invalidate(call, remote_agent);
  });
}

nixl_capi_status_t nixl_capi_check_remote_md(nixl_capi_agent_t agent, const char* remote_name,
                                             nixl_capi_xfer_dlist_t descs) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_name);
    if (descs == nullptr) return its.core->check(call, remote_name, nullptr);
    NIXL_FIND(list, XferDlist, descs);
    return its.core->check(call, remote_name, &list);
  });
}

nixl_capi_status_t nixl_capi_invalidate_local_md(nixl_capi_agent_t agent, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) { return refuse_exchange(call, agent, opt_args); });
}

nixl_capi_status_t nixl_capi_send_local_md(nixl_capi_agent_t agent, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) { return refuse_exchange(call, agent, opt_args); });
}

nixl_capi_status_t nixl_capi_send_local_partial_md(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                                   nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(list, RegDlist, descs);
    return refuse_exchange(call, agent, opt_args);
  });
}

nixl_capi_status_t nixl_capi_fetch_remote_md(nixl_capi_agent_t agent, const char* remote_name,
                                             nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(remote_name);
    return refuse_exchange(call, agent, opt_args);
  });
}

nixl_capi_status_t nixl_capi_agent_make_connection(nixl_capi_agent_t agent, const char* remote_agent,
                                                   nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_agent);
    return its.core->connect(call, remote_agent);
  });
}

nixl_capi_status_t nixl_capi_get_available_plugins(nixl_capi_agent_t agent, nixl_capi_string_list_t* plugins) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(plugins);
    auto list = std::make_unique<StringList>();
    list->all.emplace_back(kUcx);
    return give(call, plugins, std::move(list));
  });
}

nixl_capi_status_t nixl_capi_get_plugin_params(nixl_capi_agent_t agent, const char* plugin_name,
                                               nixl_capi_mem_list_t* mems, nixl_capi_params_t* params) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(plugin_name);
    NIXL_NOT_NULL(mems);
    NIXL_NOT_NULL(params);
    if (!is_word(plugin_name, {kUcx.data()})) {
      return refuse(call, NIXL_CAPI_ERROR_BACKEND, "no plugin '" + std::string(plugin_name) + "'; there is UCX");
    }
    return give_params(call, ucx_defaults(), mems, params);
  });
}

nixl_capi_status_t nixl_capi_create_backend(nixl_capi_agent_t agent, const char* plugin_name, nixl_capi_params_t params,
                                            nixl_capi_backend_t* backend) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(plugin_name);
    NIXL_FIND(texts, Params, params);
    NIXL_NOT_NULL(backend);
    const nixl_capi_status_t status = its.core->create_backend(call, plugin_name, texts.texts);
    if (status != NIXL_CAPI_SUCCESS) return status;
    auto made = std::make_unique<BackendHandle>();
    made->name = kUcx;
    made->agent = its.core.get();
    return give(call, backend, std::move(made));
  });
}

nixl_capi_status_t nixl_capi_destroy_backend(nixl_capi_backend_t backend) {
  return destroy<BackendHandle>(__func__, backend);
}

nixl_capi_status_t nixl_capi_get_backend_params(nixl_capi_agent_t agent, nixl_capi_backend_t backend,
                                                nixl_capi_mem_list_t* mems, nixl_capi_params_t* params) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(which, BackendHandle, backend);
    NIXL_NOT_NULL(mems);
    NIXL_NOT_NULL(params);
    if (which.agent != its.core.get()) {
      return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the backend is another agent's");
    }
    Texts texts = its.core->backend_params();
    texts.merge(ucx_defaults());
    return give_params(call, std::move(texts), mems, params);
  });
}

nixl_capi_status_t nixl_capi_register_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t dlist, nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, dlist);
    return its.core->register_memory(call, list);
  });
}

nixl_capi_status_t nixl_capi_deregister_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t dlist,
                                            nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, dlist);
    return its.core->deregister(call, list);
  });
}

nixl_capi_status_t nixl_capi_query_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                       nixl_capi_query_resp_list_t resp, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, descs);
    NIXL_FIND(answers, RespList, resp);
    NIXL_FIND(args, OptArgs, opt_args);
    if (args.backends.size() != 1) {
      return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the options must name exactly one backend");
    }
    return refuse(call, NIXL_CAPI_ERROR_BACKEND, "not supported: UCX knows nothing of memory beyond its registration");
  });
}

nixl_capi_status_t nixl_capi_get_notifs(nixl_capi_agent_t agent, nixl_capi_notif_map_t notif_map,
                                        nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(map, NotifMap, notif_map);
    if (!its.core->has_backend()) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the agent has no backend yet");
    its.core->take_notifications(&map);
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_gen_notif(nixl_capi_agent_t agent, const char* remote_agent, const void* data, size_t len,
                                       nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_agent);
    if (len > 0) NIXL_NOT_NULL(data);
    return its.core->notify(call, remote_agent, {static_cast<const char*>(data), len});
  });
}

nixl_capi_status_t nixl_capi_prep_mem_view_local(nixl_capi_agent_t agent, nixl_capi_xfer_dlist_t descs,
                                                 nixl_capi_mem_view_t* mvh, nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(list, XferDlist, descs);
    NIXL_NOT_NULL(mvh);
    return refuse_views(call, agent);
  });
}

nixl_capi_status_t nixl_capi_prep_mem_view_remote(nixl_capi_agent_t agent, nixl_capi_remote_dlist_t descs,
                                                  nixl_capi_mem_view_t* mvh, nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(list, RemoteDlist, descs);
    NIXL_NOT_NULL(mvh);
    return refuse_views(call, agent);
  });
}

nixl_capi_status_t nixl_capi_release_mem_view(nixl_capi_agent_t agent, nixl_capi_mem_view_t mvh) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    (void)mvh;  // None was ever given out.
    return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "this is no memory view");
  });
}
