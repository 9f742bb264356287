#pragma once

/* A libhawser.so whose backends are loopback, verbs over RDMA devices in memory (mock0, mock1) with a fake CUDA driver,
   and tcp: what it has more than the real one. For C programs, and for Python by ctypes. */

#include <hawser/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This memory stands for an allocation of GPU `ordinal` from now on; `id` is its buffer id. */
HAWSER_C_API void hawser_mock_gpu(void* base, uint64_t bytes, int ordinal, uint64_t id);
/* How many dmabufs the driver exported so far, and bytes of the last one. */
HAWSER_C_API void hawser_mock_exported(uint64_t* count, uint64_t* bytes);

#ifdef __cplusplus
}
#endif
