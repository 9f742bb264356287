// The NIXL face: agents, plugins, memory, metadata, notifications.

#include "api/nixl/nixl_capi.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/nixl/call.h"
#include "api/nixl/objects.h"

namespace hawser::nixl {
namespace {

/// For functions that know one error only.
nixl_capi_status_t backend_error(const char* call, const Status& status) {
  return refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
}

nixl_capi_status_t open_agent(const char* call, const char* name, const compat::AgentConfig& config,
                              nixl_capi_agent_t* agent) {
  NIXL_NOT_NULL(name);
  NIXL_NOT_NULL(agent);
  Result<compat::Agent> opened = compat::Agent::open(name, config);
  if (!opened) return backend_error(call, opened.error());
  return give(call, agent, std::make_unique<AgentHandle>(std::move(*opened)));
}

nixl_capi_status_t give_bytes(const char* call, const std::string& bytes, void** data, size_t* len) {
  void* const copy = std::malloc(bytes.size());
  if (copy == nullptr) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "out of memory");
  std::memcpy(copy, bytes.data(), bytes.size());
  *data = copy;
  *len = bytes.size();
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t give_params(const char* call, Result<compat::PluginParams> found, nixl_capi_mem_list_t* mems,
                               nixl_capi_params_t* params) {
  NIXL_NOT_NULL(mems);
  NIXL_NOT_NULL(params);
  if (!found) return backend_error(call, found.error());
  auto list = std::make_unique<MemList>();
  list->all = std::move(found->mems);
  auto made = std::make_unique<ParamsObject>();
  made->texts = std::move(found->params);
  nixl_capi_mem_list_t first = nullptr;
  nixl_capi_status_t status = give(call, &first, std::move(list));
  if (status != NIXL_CAPI_SUCCESS) return status;
  status = give(call, params, std::move(made));
  if (status == NIXL_CAPI_SUCCESS) {
    *mems = first;
  } else {
    (void)destroy<MemList>(call, first);  // The client is given both or none.
  }
  return status;
}

}  // namespace
}  // namespace hawser::nixl

using namespace hawser;
using namespace hawser::nixl;

nixl_capi_status_t nixl_capi_create_configured_agent(const char* name, const nixl_capi_agent_config_t* cfg,
                                                     nixl_capi_agent_t* agent) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(cfg);
    return open_agent(call, name,
                      {.progress_thread = cfg->enable_prog_thread,
                       .listen_thread = cfg->enable_listen_thread,
                       .listen_port = static_cast<std::uint16_t>(cfg->listen_port),
                       .capture_telemetry = cfg->capture_telemetry},
                      agent);
  });
}

nixl_capi_status_t nixl_capi_create_agent(const char* name, nixl_capi_agent_t* agent) {
  return run(__func__, [&](const char* call) { return open_agent(call, name, {}, agent); });
}

nixl_capi_status_t nixl_capi_destroy_agent(nixl_capi_agent_t agent) {
  return run(__func__, [&](const char* call) {
    {
      NIXL_FIND(its, AgentHandle, agent);
      // Requests may be left, and keep what is behind the agent alive. The client frees its memory next.
      if (const Status status = its.agent.close(); !status.ok()) say_warning(call, status.to_string());
    }
    return destroy<AgentHandle>(call, agent);
  });
}

nixl_capi_status_t nixl_capi_get_local_md(nixl_capi_agent_t agent, void** data, size_t* len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(len);
    const Result<std::string> blob = its.agent.get_local_md();
    return blob ? give_bytes(call, *blob, data, len) : refuse(call, blob.error());
  });
}

nixl_capi_status_t nixl_capi_get_local_partial_md(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs, void** data,
                                                  size_t* len, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, descs);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(len);
    NIXL_OPTIONS(opt, opt_args);
    const Result<std::string> blob = its.agent.get_local_partial_md(list.list, opt);
    return blob ? give_bytes(call, *blob, data, len) : refuse(call, blob.error());
  });
}

nixl_capi_status_t nixl_capi_load_remote_md(nixl_capi_agent_t agent, const void* data, size_t len, char** agent_name) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(agent_name);
    if (len == 0) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the metadata is empty");
    const Result<std::string> name = its.agent.load_remote_md({static_cast<const char*>(data), len});
    if (!name) return refuse(call, name.error());
    char* const copy = ::strdup(name->c_str());
    if (copy == nullptr) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "out of memory");
    *agent_name = copy;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_invalidate_remote_md(nixl_capi_agent_t agent, const char* remote_agent) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_agent);
    const Status status = its.agent.invalidate_remote_md(remote_agent);
    // As the original: an agent that nothing is known of is a wrong parameter here.
    if (status.code() == Code::kNotFound) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, status.to_string());
    return answer(call, status);
  });
}

nixl_capi_status_t nixl_capi_check_remote_md(nixl_capi_agent_t agent, const char* remote_name,
                                             nixl_capi_xfer_dlist_t descs) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_name);
    // A question, so there is no line of text about its answer.
    const auto code = [](bool known) { return known ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_NOT_FOUND; };
    if (descs == nullptr) return code(its.agent.check_remote_metadata(remote_name));
    NIXL_FIND(list, XferDlist, descs);
    return code(its.agent.check_remote_metadata(remote_name, &list.list));
  });
}

nixl_capi_status_t nixl_capi_invalidate_local_md(nixl_capi_agent_t agent, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.invalidate_local_md(opt));
  });
}

nixl_capi_status_t nixl_capi_send_local_md(nixl_capi_agent_t agent, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.send_local_md(opt));
  });
}

nixl_capi_status_t nixl_capi_send_local_partial_md(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                                   nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, descs);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.send_local_partial_md(list.list, opt));
  });
}

nixl_capi_status_t nixl_capi_fetch_remote_md(nixl_capi_agent_t agent, const char* remote_name,
                                             nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_name);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.fetch_remote_md(remote_name, opt));
  });
}

nixl_capi_status_t nixl_capi_agent_make_connection(nixl_capi_agent_t agent, const char* remote_agent,
                                                   nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_agent);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.make_connection(remote_agent, opt));
  });
}

nixl_capi_status_t nixl_capi_get_available_plugins(nixl_capi_agent_t agent, nixl_capi_string_list_t* plugins) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(plugins);
    auto list = std::make_unique<StringList>();
    list->all = its.agent.get_available_plugins();
    return give(call, plugins, std::move(list));
  });
}

nixl_capi_status_t nixl_capi_get_plugin_params(nixl_capi_agent_t agent, const char* plugin_name,
                                               nixl_capi_mem_list_t* mems, nixl_capi_params_t* params) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(plugin_name);
    return give_params(call, its.agent.get_plugin_params(plugin_name), mems, params);
  });
}

nixl_capi_status_t nixl_capi_create_backend(nixl_capi_agent_t agent, const char* plugin_name, nixl_capi_params_t params,
                                            nixl_capi_backend_t* backend) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(plugin_name);
    NIXL_FIND(texts, ParamsObject, params);
    NIXL_NOT_NULL(backend);
    Result<compat::Backend> made = its.agent.create_backend(plugin_name, texts.texts);
    if (!made) return backend_error(call, made.error());
    return give(call, backend, std::make_unique<BackendHandle>(std::move(*made)));
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
    return give_params(call, its.agent.get_backend_params(which.backend), mems, params);
  });
}

nixl_capi_status_t nixl_capi_register_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t dlist,
                                          nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, dlist);
    NIXL_OPTIONS(opt, opt_args);
    Result<compat::RegistrationHandle> made = its.agent.register_memory(list.list, opt);
    if (!made) return refuse(call, made.error());
    made->detach();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_deregister_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t dlist,
                                            nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, dlist);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.deregister_memory(list.list, opt));
  });
}

nixl_capi_status_t nixl_capi_query_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                       nixl_capi_query_resp_list_t resp, nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RegDlist, descs);
    NIXL_FIND(answers, RespList, resp);
    NIXL_OPTIONS(opt, opt_args);
    Result<compat::QueryResponses> found = its.agent.query_mem(list.list, opt);
    if (!found) return refuse(call, found.error());
    answers.all = std::move(*found);
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_get_notifs(nixl_capi_agent_t agent, nixl_capi_notif_map_t notif_map,
                                        nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(map, NotifMap, notif_map);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.get_notifications(map.all, opt));
  });
}

nixl_capi_status_t nixl_capi_gen_notif(nixl_capi_agent_t agent, const char* remote_agent, const void* data, size_t len,
                                       nixl_capi_opt_args_t opt_args) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_NOT_NULL(remote_agent);
    if (len > 0) NIXL_NOT_NULL(data);
    NIXL_OPTIONS(opt, opt_args);
    return answer(call, its.agent.send_notification(remote_agent, {static_cast<const char*>(data), len}, opt));
  });
}

nixl_capi_status_t nixl_capi_prep_mem_view_local(nixl_capi_agent_t agent, nixl_capi_xfer_dlist_t descs,
                                                 nixl_capi_mem_view_t* mvh, nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, XferDlist, descs);
    NIXL_NOT_NULL(mvh);
    std::vector<compat::ViewDesc> all;
    for (const compat::Desc& desc : list.list) all.push_back({desc, its.agent.name()});
    return refuse(call, its.agent.prep_mem_view(list.list.type(), all));
  });
}

nixl_capi_status_t nixl_capi_prep_mem_view_remote(nixl_capi_agent_t agent, nixl_capi_remote_dlist_t descs,
                                                  nixl_capi_mem_view_t* mvh, nixl_capi_opt_args_t) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    NIXL_FIND(list, RemoteDlist, descs);
    NIXL_NOT_NULL(mvh);
    std::vector<compat::ViewDesc> all;
    for (const RemoteDesc& desc : list.all) all.push_back({desc, desc.agent ? std::string_view(*desc.agent) : ""});
    return refuse(call, its.agent.prep_mem_view(list.type, all));
  });
}

nixl_capi_status_t nixl_capi_release_mem_view(nixl_capi_agent_t agent, nixl_capi_mem_view_t mvh) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, AgentHandle, agent);
    (void)mvh;  // None was ever given out.
    return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "this is no memory view");
  });
}
