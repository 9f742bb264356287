#pragma once

/* The parts of the program nixl_peer. One thread, but for its flood. */

#include <stddef.h>
#include <stdint.h>

#include "nixl_capi.h"

typedef struct {
  nixl_capi_agent_t agent;
  nixl_capi_backend_t backend;
  nixl_capi_reg_dlist_t registered;
  char* bytes; /* The registered memory. */
  size_t size;
  nixl_capi_xfer_dlist_handle_t local, remote;
  size_t count; /* Blocks in them. */
  nixl_capi_xfer_req_t request;
} Its;

/* Appends to the answer of the line. */
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);
/* Ends the process when a call that must work does not. */
int must(int code, const char* call);
#define MUST(call) must((int)(call), #call)

nixl_capi_reg_dlist_t reg_list(uintptr_t at, size_t size);
nixl_capi_xfer_dlist_t blocks_of(uintptr_t at, size_t size, size_t count);

/* Lines about notifications; false when it is none. */
int act_on_notifications(Its* at, char** words);
