#pragma once

/* Checks for C programs on the NIXL face: what is wrong is printed and counted, and the program goes on. One thread. */

#include <stdio.h>
#include <stdlib.h>

#include "nixl_capi.h"

static int failed;

#define GIVES(wanted, call)                                                                                 \
  do {                                                                                                      \
    const int gives_code = (int)(call);                                                                     \
    if (gives_code != (int)(wanted)) {                                                                      \
      fprintf(stderr, "%s:%d: %s gave %d, not %d\n", __FILE__, __LINE__, #call, gives_code, (int)(wanted)); \
      ++failed;                                                                                             \
    }                                                                                                       \
  } while (0)
#define CHECK(condition) GIVES(1, (condition) ? 1 : 0)
/* What follows makes no sense without it. */
#define MUST(call)                                                                  \
  do {                                                                              \
    const int must_code = (int)(call);                                              \
    if (must_code != NIXL_CAPI_SUCCESS) {                                           \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, must_code); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)
#define INVALID(call) GIVES(NIXL_CAPI_ERROR_INVALID_PARAM, call)
