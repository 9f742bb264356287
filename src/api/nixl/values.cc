// The NIXL face: parameters, string and memory type lists, optional arguments, notification maps, query answers.

#include <cstdlib>
#include <cstring>

#include "api/nixl/call.h"
#include "api/nixl/objects.h"

using namespace hawser::nixl;

namespace {

/// A copy from malloc, which the client frees; nothing for no bytes, as NIXL does.
nixl_capi_status_t give_copy(const char* call, const std::string& bytes, void** data, size_t* len) {
  NIXL_NOT_NULL(data);
  NIXL_NOT_NULL(len);
  void* copy = nullptr;
  if (!bytes.empty()) {
    copy = std::malloc(bytes.size());
    if (copy == nullptr) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "out of memory");
    std::memcpy(copy, bytes.data(), bytes.size());
  }
  *data = copy;
  *len = bytes.size();
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t out_of_range(const char* call, std::size_t index, std::size_t size) {
  return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM,
                "index " + std::to_string(index) + " is not below " + std::to_string(size));
}

}  // namespace

bool nixl_capi_is_stub(void) { return false; }

void nixl_capi_mem_free(void* data) { std::free(data); }

nixl_capi_status_t nixl_capi_create_params(nixl_capi_params_t* params) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(params);
    return give(call, params, std::make_unique<ParamsObject>());
  });
}
nixl_capi_status_t nixl_capi_destroy_params(nixl_capi_params_t params) {
  return destroy<ParamsObject>(__func__, params);
}

nixl_capi_status_t nixl_capi_params_add(nixl_capi_params_t params, const char* key, const char* value) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, ParamsObject, params);
    NIXL_NOT_NULL(key);
    NIXL_NOT_NULL(value);
    its.texts[key] = value;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_params_is_empty(nixl_capi_params_t params, bool* is_empty) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, ParamsObject, params);
    NIXL_NOT_NULL(is_empty);
    *is_empty = its.texts.empty();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_params_create_iterator(nixl_capi_params_t params, nixl_capi_param_iter_t* iter) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, ParamsObject, params);
    NIXL_NOT_NULL(iter);
    auto made = std::make_unique<ParamIter>();
    made->all.assign(its.texts.begin(), its.texts.end());
    return give(call, iter, std::move(made));
  });
}

nixl_capi_status_t nixl_capi_params_iterator_next(nixl_capi_param_iter_t iter, const char** key, const char** value,
                                                  bool* has_next) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, ParamIter, iter);
    NIXL_NOT_NULL(key);
    NIXL_NOT_NULL(value);
    NIXL_NOT_NULL(has_next);
    *has_next = false;
    if (its.next == its.all.size()) return NIXL_CAPI_SUCCESS;  // `key` stays what it was: clients look at that.
    *key = its.all[its.next].first.c_str();
    *value = its.all[its.next].second.c_str();
    *has_next = ++its.next < its.all.size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_params_destroy_iterator(nixl_capi_param_iter_t iter) {
  return destroy<ParamIter>(__func__, iter);
}

nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list) {
  return destroy<StringList>(__func__, list);
}

nixl_capi_status_t nixl_capi_string_list_size(nixl_capi_string_list_t list, size_t* size) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, StringList, list);
    NIXL_NOT_NULL(size);
    *size = its.all.size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_string_list_get(nixl_capi_string_list_t list, size_t index, const char** str) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, StringList, list);
    NIXL_NOT_NULL(str);
    if (index >= its.all.size()) return out_of_range(call, index, its.all.size());
    *str = its.all[index].c_str();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list) { return destroy<MemList>(__func__, list); }

nixl_capi_status_t nixl_capi_mem_list_is_empty(nixl_capi_mem_list_t list, bool* is_empty) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, MemList, list);
    NIXL_NOT_NULL(is_empty);
    *is_empty = its.all.empty();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t* size) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, MemList, list);
    NIXL_NOT_NULL(size);
    *size = its.all.size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_mem_list_get(nixl_capi_mem_list_t list, size_t index, nixl_capi_mem_type_t* mem_type) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, MemList, list);
    NIXL_NOT_NULL(mem_type);
    if (index >= its.all.size()) return out_of_range(call, index, its.all.size());
    *mem_type = static_cast<nixl_capi_mem_type_t>(its.all[index]);
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_mem_type_to_string(nixl_capi_mem_type_t mem_type, const char** str) {
  return run(__func__, [&](const char* call) {
    static constexpr const char* kNames[] = {"DRAM", "VRAM", "BLOCK", "OBJECT", "FILE"};
    NIXL_NOT_NULL(str);
    const int number = mem_type;
    *str = number >= 0 && number <= NIXL_CAPI_MEM_FILE ? kNames[number] : "UNKNOWN";
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_create_opt_args(nixl_capi_opt_args_t* args) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(args);
    return give(call, args, std::make_unique<OptArgs>());
  });
}
nixl_capi_status_t nixl_capi_destroy_opt_args(nixl_capi_opt_args_t args) { return destroy<OptArgs>(__func__, args); }

nixl_capi_status_t nixl_capi_opt_args_add_backend(nixl_capi_opt_args_t args, nixl_capi_backend_t backend) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    NIXL_FIND(which, BackendHandle, backend);
    its.args.backends.push_back(which.backend);
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_opt_args_set_notif_msg(nixl_capi_opt_args_t args, const void* data, size_t len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    NIXL_NOT_NULL(data);
    its.notif.assign(static_cast<const char*>(data), len);
    its.update();
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_opt_args_get_notif_msg(nixl_capi_opt_args_t args, void** data, size_t* len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    return give_copy(call, its.notif, data, len);
  });
}

nixl_capi_status_t nixl_capi_opt_args_set_custom_param(nixl_capi_opt_args_t args, const void* data, size_t len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    NIXL_NOT_NULL(data);
    its.args.custom_param.assign(static_cast<const char*>(data), len);
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_opt_args_get_custom_param(nixl_capi_opt_args_t args, void** data, size_t* len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    return give_copy(call, its.args.custom_param, data, len);
  });
}

nixl_capi_status_t nixl_capi_opt_args_set_has_notif(nixl_capi_opt_args_t args, bool has_notif) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    its.has_notif = has_notif;
    its.update();
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_opt_args_get_has_notif(nixl_capi_opt_args_t args, bool* has_notif) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    NIXL_NOT_NULL(has_notif);
    *has_notif = its.has_notif;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_opt_args_set_skip_desc_merge(nixl_capi_opt_args_t args, bool skip_merge) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    its.args.skip_desc_merge = skip_merge;
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_opt_args_get_skip_desc_merge(nixl_capi_opt_args_t args, bool* skip_merge) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    NIXL_NOT_NULL(skip_merge);
    *skip_merge = its.args.skip_desc_merge;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_opt_args_set_ip_addr(nixl_capi_opt_args_t args, const char* ip_addr) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    NIXL_NOT_NULL(ip_addr);
    its.args.ip_address = ip_addr;
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_opt_args_set_port(nixl_capi_opt_args_t args, uint16_t port) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, OptArgs, args);
    its.args.port = port;
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_create_notif_map(nixl_capi_notif_map_t* notif_map) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(notif_map);
    return give(call, notif_map, std::make_unique<NotifMap>());
  });
}
nixl_capi_status_t nixl_capi_destroy_notif_map(nixl_capi_notif_map_t notif_map) {
  return destroy<NotifMap>(__func__, notif_map);
}

nixl_capi_status_t nixl_capi_notif_map_size(nixl_capi_notif_map_t map, size_t* size) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, NotifMap, map);
    NIXL_NOT_NULL(size);
    *size = its.all.size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_notif_map_get_agent_at(nixl_capi_notif_map_t map, size_t index, const char** agent_name) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, NotifMap, map);
    NIXL_NOT_NULL(agent_name);
    if (index >= its.all.size()) return out_of_range(call, index, its.all.size());
    *agent_name = std::next(its.all.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_notif_map_get_notifs_size(nixl_capi_notif_map_t map, const char* agent_name,
                                                       size_t* size) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, NotifMap, map);
    NIXL_NOT_NULL(agent_name);
    NIXL_NOT_NULL(size);
    const auto found = its.all.find(agent_name);
    if (found == its.all.end()) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "nothing came from that agent");
    *size = found->second.size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_notif_map_get_notif(nixl_capi_notif_map_t map, const char* agent_name, size_t index,
                                                 const void** data, size_t* len) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, NotifMap, map);
    NIXL_NOT_NULL(agent_name);
    NIXL_NOT_NULL(data);
    NIXL_NOT_NULL(len);
    const auto found = its.all.find(agent_name);
    if (found == its.all.end()) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "nothing came from that agent");
    if (index >= found->second.size()) return out_of_range(call, index, found->second.size());
    *data = found->second[index].data();
    *len = found->second[index].size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_notif_map_clear(nixl_capi_notif_map_t map) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, NotifMap, map);
    its.all.clear();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_create_query_resp_list(nixl_capi_query_resp_list_t* list) {
  return run(__func__, [&](const char* call) {
    NIXL_NOT_NULL(list);
    return give(call, list, std::make_unique<RespList>());
  });
}
nixl_capi_status_t nixl_capi_destroy_query_resp_list(nixl_capi_query_resp_list_t list) {
  return destroy<RespList>(__func__, list);
}

nixl_capi_status_t nixl_capi_query_resp_list_size(nixl_capi_query_resp_list_t list, size_t* size) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, RespList, list);
    NIXL_NOT_NULL(size);
    *size = its.all.size();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_query_resp_list_has_value(nixl_capi_query_resp_list_t list, size_t index,
                                                       bool* has_value) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, RespList, list);
    NIXL_NOT_NULL(has_value);
    if (index >= its.all.size()) return out_of_range(call, index, its.all.size());
    *has_value = its.all[index].has_value();
    return NIXL_CAPI_SUCCESS;
  });
}

nixl_capi_status_t nixl_capi_query_resp_list_get_params(nixl_capi_query_resp_list_t list, size_t index,
                                                        nixl_capi_params_t* params) {
  return run(__func__, [&](const char* call) {
    NIXL_FIND(its, RespList, list);
    NIXL_NOT_NULL(params);
    if (index >= its.all.size()) return out_of_range(call, index, its.all.size());
    if (!its.all[index]) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "there is no value");
    auto made = std::make_unique<ParamsObject>();
    made->texts = *its.all[index];
    return give(call, params, std::move(made));
  });
}
