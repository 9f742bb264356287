#pragma once

// Hawser: moves bytes between the memories of a cluster. This header includes the whole door.

#include <hawser/agent.h>
#include <hawser/atomic.h>
#include <hawser/backends.h>
#include <hawser/buffer_pool.h>
#include <hawser/collective.h>
#include <hawser/completion.h>
#include <hawser/compress.h>
#include <hawser/config.h>
#include <hawser/counters.h>
#include <hawser/datatype.h>
#include <hawser/directory.h>
#include <hawser/driver.h>
#include <hawser/file.h>
#include <hawser/grant.h>
#include <hawser/memory.h>
#include <hawser/peer.h>
#include <hawser/rdma.h>
#include <hawser/seed.h>
#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/topology.h>
#include <hawser/transfer.h>
#include <hawser/version.h>
#include <hawser/world.h>
