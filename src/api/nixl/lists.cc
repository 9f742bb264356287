// The NIXL face: descriptor lists.

#include <cstdio>

#include "api/nixl/call.h"
#include "api/nixl/objects.h"

namespace hawser::nixl {
namespace {

constexpr std::size_t kDescsMax = std::size_t{1} << 28;  // A list may be resized to 6 GiB of descriptors.

template <typename List, typename Handle>
nixl_capi_status_t make_list(const char* name, nixl_capi_mem_type_t type, Handle* out) {
  return run(name, [&](const char* call) {
    NIXL_NOT_NULL(out);
    const int number = type;
    if (number < NIXL_CAPI_MEM_DRAM || number > NIXL_CAPI_MEM_FILE) {
      return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "memory type " + std::to_string(number) + " is unknown");
    }
    return give(call, out, std::make_unique<List>(static_cast<compat::MemType>(number)));
  });
}

template <typename List, typename Handle, typename Use>
nixl_capi_status_t with(const char* name, Handle handle, Use use) {
  return run(name, [&](const char* call) {
    const auto list = find<List>(call, handle);
    if (!list) return refuse(call, list.error());
    return use(call, **list);
  });
}

template <typename List, typename Handle>
nixl_capi_status_t type_of(const char* name, Handle handle, nixl_capi_mem_type_t* out) {
  return with<List>(name, handle, [&](const char* call, List& list) {
    NIXL_NOT_NULL(out);
    *out = static_cast<nixl_capi_mem_type_t>(list.list.type());
    return NIXL_CAPI_SUCCESS;
  });
}

template <typename List, typename Handle>
nixl_capi_status_t count_of(const char* name, Handle handle, size_t* out) {
  return with<List>(name, handle, [&](const char* call, List& list) {
    NIXL_NOT_NULL(out);
    *out = list.list.size();
    return NIXL_CAPI_SUCCESS;
  });
}

template <typename List, typename Handle>
nixl_capi_status_t empty_of(const char* name, Handle handle, bool* out) {
  return with<List>(name, handle, [&](const char* call, List& list) {
    NIXL_NOT_NULL(out);
    *out = list.list.empty();
    return NIXL_CAPI_SUCCESS;
  });
}

template <typename List, typename Handle>
nixl_capi_status_t remove_at(const char* name, Handle handle, int index) {
  return with<List>(name, handle, [&](const char* call, List& list) {
    const Status status = list.list.remove(index < 0 ? SIZE_MAX : static_cast<std::size_t>(index));
    return status.ok() ? NIXL_CAPI_SUCCESS : refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
  });
}

template <typename List, typename Handle>
nixl_capi_status_t clear(const char* name, Handle handle) {
  return with<List>(name, handle, [](const char*, List& list) {
    list.list.clear();
    return NIXL_CAPI_SUCCESS;
  });
}

template <typename List, typename Handle>
nixl_capi_status_t nothing(const char* name, Handle handle) {
  return with<List>(name, handle, [](const char*, List&) { return NIXL_CAPI_SUCCESS; });
}

template <typename List, typename Handle>
nixl_capi_status_t resize(const char* name, Handle handle, size_t size) {
  return with<List>(name, handle, [&](const char* call, List& list) {
    if (size > kDescsMax) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "a list of more than 2^28 entries");
    list.list.resize(size);
    return NIXL_CAPI_SUCCESS;
  });
}

template <typename List, typename Handle>
nixl_capi_status_t print(const char* name, Handle handle) {
  return with<List>(name, handle, [](const char*, List& list) {
    (void)std::fputs(compat::to_string(list.list).c_str(), stdout);
    return NIXL_CAPI_SUCCESS;
  });
}

}  // namespace
}  // namespace hawser::nixl

using namespace hawser::nixl;

nixl_capi_status_t nixl_capi_create_xfer_dlist(nixl_capi_mem_type_t mem_type, nixl_capi_xfer_dlist_t* dlist) {
  return make_list<XferDlist>(__func__, mem_type, dlist);
}
nixl_capi_status_t nixl_capi_destroy_xfer_dlist(nixl_capi_xfer_dlist_t dlist) {
  return destroy<XferDlist>(__func__, dlist);
}
nixl_capi_status_t nixl_capi_xfer_dlist_get_type(nixl_capi_xfer_dlist_t dlist, nixl_capi_mem_type_t* mem_type) {
  return type_of<XferDlist>(__func__, dlist, mem_type);
}
nixl_capi_status_t nixl_capi_xfer_dlist_add_desc(nixl_capi_xfer_dlist_t dlist, uintptr_t addr, size_t len,
                                                 uint64_t dev_id) {
  return with<XferDlist>(__func__, dlist, [&](const char*, XferDlist& list) {
    list.list.add(addr, len, dev_id);
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_xfer_dlist_desc_count(nixl_capi_xfer_dlist_t dlist, size_t* count) {
  return count_of<XferDlist>(__func__, dlist, count);
}
nixl_capi_status_t nixl_capi_xfer_dlist_len(nixl_capi_xfer_dlist_t dlist, size_t* len) {
  return count_of<XferDlist>(__func__, dlist, len);
}
nixl_capi_status_t nixl_capi_xfer_dlist_is_empty(nixl_capi_xfer_dlist_t dlist, bool* is_empty) {
  return empty_of<XferDlist>(__func__, dlist, is_empty);
}
nixl_capi_status_t nixl_capi_xfer_dlist_trim(nixl_capi_xfer_dlist_t dlist) {
  return nothing<XferDlist>(__func__, dlist);
}
nixl_capi_status_t nixl_capi_xfer_dlist_rem_desc(nixl_capi_xfer_dlist_t dlist, int index) {
  return remove_at<XferDlist>(__func__, dlist, index);
}
nixl_capi_status_t nixl_capi_xfer_dlist_clear(nixl_capi_xfer_dlist_t dlist) {
  return clear<XferDlist>(__func__, dlist);
}
nixl_capi_status_t nixl_capi_xfer_dlist_resize(nixl_capi_xfer_dlist_t dlist, size_t new_size) {
  return resize<XferDlist>(__func__, dlist, new_size);
}
nixl_capi_status_t nixl_capi_xfer_dlist_print(nixl_capi_xfer_dlist_t dlist) {
  return print<XferDlist>(__func__, dlist);
}

nixl_capi_status_t nixl_capi_create_reg_dlist(nixl_capi_mem_type_t mem_type, nixl_capi_reg_dlist_t* dlist) {
  return make_list<RegDlist>(__func__, mem_type, dlist);
}
nixl_capi_status_t nixl_capi_destroy_reg_dlist(nixl_capi_reg_dlist_t dlist) {
  return destroy<RegDlist>(__func__, dlist);
}
nixl_capi_status_t nixl_capi_reg_dlist_get_type(nixl_capi_reg_dlist_t dlist, nixl_capi_mem_type_t* mem_type) {
  return type_of<RegDlist>(__func__, dlist, mem_type);
}
nixl_capi_status_t nixl_capi_reg_dlist_add_desc(nixl_capi_reg_dlist_t dlist, uintptr_t addr, size_t len,
                                                uint64_t dev_id, const void* metadata, size_t metadata_len) {
  return with<RegDlist>(__func__, dlist, [&](const char*, RegDlist& list) {
    const bool has_text = metadata != nullptr && metadata_len > 0;
    list.list.add(addr, len, dev_id,
                  has_text ? std::string(static_cast<const char*>(metadata), metadata_len) : std::string());
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_reg_dlist_desc_count(nixl_capi_reg_dlist_t dlist, size_t* count) {
  return count_of<RegDlist>(__func__, dlist, count);
}
nixl_capi_status_t nixl_capi_reg_dlist_is_empty(nixl_capi_reg_dlist_t dlist, bool* is_empty) {
  return empty_of<RegDlist>(__func__, dlist, is_empty);
}
nixl_capi_status_t nixl_capi_reg_dlist_trim(nixl_capi_reg_dlist_t dlist) { return nothing<RegDlist>(__func__, dlist); }
nixl_capi_status_t nixl_capi_reg_dlist_rem_desc(nixl_capi_reg_dlist_t dlist, int index) {
  return remove_at<RegDlist>(__func__, dlist, index);
}
nixl_capi_status_t nixl_capi_reg_dlist_clear(nixl_capi_reg_dlist_t dlist) { return clear<RegDlist>(__func__, dlist); }
nixl_capi_status_t nixl_capi_reg_dlist_resize(nixl_capi_reg_dlist_t dlist, size_t new_size) {
  return resize<RegDlist>(__func__, dlist, new_size);
}
nixl_capi_status_t nixl_capi_reg_dlist_print(nixl_capi_reg_dlist_t dlist) { return print<RegDlist>(__func__, dlist); }

nixl_capi_status_t nixl_capi_create_remote_dlist(nixl_capi_mem_type_t mem_type, nixl_capi_remote_dlist_t* dlist) {
  return make_list<RemoteDlist>(__func__, mem_type, dlist);
}
nixl_capi_status_t nixl_capi_destroy_remote_dlist(nixl_capi_remote_dlist_t dlist) {
  return destroy<RemoteDlist>(__func__, dlist);
}
nixl_capi_status_t nixl_capi_remote_dlist_add_desc(nixl_capi_remote_dlist_t dlist, uintptr_t addr, size_t len,
                                                   uint64_t dev_id, const char* remote_agent) {
  return with<RemoteDlist>(__func__, dlist, [&](const char*, RemoteDlist& list) {
    RemoteDesc desc;
    desc.addr = addr;
    desc.len = len;
    desc.dev = dev_id;
    if (remote_agent != nullptr) desc.agent = remote_agent;
    list.all.push_back(std::move(desc));
    return NIXL_CAPI_SUCCESS;
  });
}
