/* An allocator's segments, told by a function of the user's: against a library with RDMA devices in memory and a fake
   CUDA driver, because no GPU is at hand. usage: segments [polled] */

#include <threads.h>

#include "c_api.h"
#include "mock_library.h"

int checks_failed;
static int warnings;

enum { kAllocation = 64 * 1024, kAllocations = 8 };

/* What the function is to tell, and what it saw. */
typedef struct {
  char* base;
  int allocations, answer, asked;
  uint32_t ordinal;
  thrd_t thread;
  hawser_segments last;
} Allocator;

static void add_wrong_ones(hawser_segments into, char* base) {
  hawser_segment segment = HAWSER_INIT(hawser_segment);
  REFUSED(hawser_segments_add(into, NULL), HAWSER_INVALID, "segment is null");
  REFUSED(hawser_segments_add(into, &segment), HAWSER_INVALID, "base is null");
  segment.base = base;
  REFUSED(hawser_segments_add(into, &segment), HAWSER_INVALID, "0 bytes");
  segment.bytes = UINT64_MAX;
  REFUSED(hawser_segments_add(into, &segment), HAWSER_INVALID, "no range");
  segment.bytes = kAllocation;
  segment.device_kind = 1u << 16;
  REFUSED(hawser_segments_add(into, &segment), HAWSER_INVALID, "device_kind");
  segment.device_kind = 0;
  segment.size = 4;
  REFUSED(hawser_segments_add(into, &segment), HAWSER_INVALID, "hawser_segment");
  segment.size = sizeof segment;
  REFUSED(hawser_segments_add((hawser_segments){0}, &segment), HAWSER_INVALID, "is null");
}

static int tell(void* context, hawser_segments into) {
  Allocator* const allocator = context;
  ++allocator->asked;
  allocator->thread = thrd_current();
  allocator->last = into;
  add_wrong_ones(into, allocator->base);
  hawser_segment segment = HAWSER_INIT(hawser_segment);
  segment.device_ordinal = allocator->ordinal;
  segment.base = allocator->base;
  segment.bytes = (uint64_t)allocator->allocations * kAllocation;
  CHECK(hawser_segments_add(into, &segment) == HAWSER_OK);
  segment.device_kind = HAWSER_DEVICE_HOST; /* Passed over. */
  CHECK(hawser_segments_add(into, &segment) == HAWSER_OK);
  return allocator->answer;
}

/* Warnings of segments that are not told. */
static void count_warning(void* context, int level, const char* line) {
  if (level == 3 && strstr(line, "segments are not told") != NULL && strstr(line, "busy") != NULL) ++*(int*)context;
}

static hawser_agent open_agent(const char* name, const char* device, uint32_t flags, Allocator* allocator) {
  const hawser_param settings[] = {
      {"backends", "loopback,verbs"}, {"backend.verbs.devices", device}, {"deadline", "60s"}};
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  options.flags = flags | HAWSER_AGENT_NO_ENVIRONMENT;
  options.name = name;
  options.settings = settings;
  options.setting_count = sizeof settings / sizeof settings[0];
  if (allocator != NULL) options.segments = tell;
  options.segments_context = allocator;
  options.log = count_warning;
  options.log_context = &warnings;
  hawser_agent agent;
  MUST(hawser_agent_open(&options, &agent));
  return agent;
}

static hawser_region add(hawser_agent agent, const char* name, void* base, uint64_t bytes, uint32_t device) {
  hawser_region_options options = HAWSER_INIT(hawser_region_options);
  options.name = name;
  options.base = base;
  options.bytes = bytes;
  options.device_kind = device;
  hawser_region region;
  MUST(hawser_agent_add_region(agent, &options, &region));
  return region;
}

/* Adds a region of the GPU and tells what had to be exported for it: 0, or the bytes of one dmabuf. */
static uint64_t exported_for(hawser_agent agent, const char* name, char* base, uint64_t bytes) {
  uint64_t before, after, size;
  hawser_mock_exported(&before, &size);
  const hawser_region region = add(agent, name, base, bytes, HAWSER_DEVICE_CUDA);
  hawser_mock_exported(&after, &size);
  CHECK(hawser_region_release(region) == HAWSER_OK);
  CHECK(after - before <= 1);
  return after == before ? 0 : size;
}

static void test_segments(hawser_agent agent, Allocator* allocator) {
  char* const base = allocator->base;
  CHECK(exported_for(agent, "small", base + 100, 1000) == 2 * kAllocation); /* The segment, not the allocation. */
  CHECK(allocator->asked == 1 && thrd_equal(allocator->thread, thrd_current()));
  CHECK(exported_for(agent, "across", base + kAllocation - 500, 1000) == 0);
  CHECK(allocator->asked == 1);
  hawser_segment late = HAWSER_INIT(hawser_segment);
  late.base = base;
  late.bytes = kAllocation;
  REFUSED(hawser_segments_add(allocator->last, &late), HAWSER_INVALID, "released");

  allocator->answer = HAWSER_BUSY; /* What was told before stays, what it tells now does not count. */
  allocator->allocations = 4;
  CHECK(exported_for(agent, "refused", base + 2 * kAllocation, 1000) == kAllocation);
  CHECK(allocator->asked == 2 && warnings == 1);
  CHECK(exported_for(agent, "kept", base, 1000) == 0);
  allocator->answer = HAWSER_OK;
  CHECK(exported_for(agent, "grown", base + 3 * kAllocation, 1000) == 2 * kAllocation); /* Only what is new. */
  CHECK(allocator->asked == 3);
  allocator->ordinal = 5; /* Another GPU's. */
  allocator->base = base + 5 * kAllocation;
  CHECK(exported_for(agent, "another", base + 5 * kAllocation, 1000) == kAllocation);
  CHECK(allocator->asked == 4 && warnings == 1);
}

/* The key of a segment carries bytes. */
static void test_transfer(hawser_agent from, hawser_agent to, char* gpu, int is_polled) {
  static char host[4096];
  for (size_t i = 0; i < sizeof host; ++i) host[i] = (char)(i * 7);
  const hawser_region source = add(from, "host", host, sizeof host, HAWSER_DEVICE_HOST);
  const hawser_region target = add(to, "gpu", gpu + kAllocation - 2048, sizeof host, HAWSER_DEVICE_CUDA);
  hawser_buffer card;
  hawser_peer peer;
  MUST(hawser_agent_card(to, &card));
  MUST(hawser_agent_add_peer(from, card.data, card.size, &peer));
  hawser_buffer_free(&card);
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  MUST(hawser_peer_region(peer, "gpu", &info));
  const hawser_local_range ours = {source, 0, sizeof host};
  const hawser_remote_range theirs = {info.index, 0, 0, sizeof host};
  hawser_plan plan;
  hawser_transfer transfer;
  MUST(hawser_plan_ranges(from, HAWSER_WRITE, peer, &ours, &theirs, 1, &plan));
  MUST(hawser_plan_submit(plan, NULL, &transfer));
  hawser_transfer_info state = HAWSER_INIT(hawser_transfer_info);
  while (is_polled && !state.done) {
    MUST(hawser_agent_poll(from, NULL));
    MUST(hawser_agent_poll(to, NULL));
    MUST(hawser_transfer_info_get(transfer, &state));
  }
  MUST(hawser_transfer_wait(transfer, PATIENCE));
  CHECK(memcmp(gpu + kAllocation - 2048, host, sizeof host) == 0);
  MUST(hawser_transfer_release(transfer));
  MUST(hawser_plan_release(plan));
  MUST(hawser_region_close(source, PATIENCE));
  MUST(hawser_region_release(source));
  MUST(hawser_region_release(target));
}

int main(int argc, char** argv) {
  const int is_polled = argc > 1 && strcmp(argv[1], "polled") == 0;
  char* const gpu = aligned_alloc(4096, kAllocations * kAllocation);
  if (gpu == NULL) return 1;
  for (uint64_t i = 0; i < kAllocations; ++i) hawser_mock_gpu(gpu + i * kAllocation, kAllocation, 0, i + 1);
  Allocator allocator = {.base = gpu, .allocations = 2};
  const uint32_t flags = is_polled ? HAWSER_AGENT_POLLED : 0;
  const hawser_agent owner = open_agent("owner", "mock0", flags, &allocator);
  const hawser_agent user = open_agent("user", "mock1", flags, NULL);
  test_transfer(user, owner, gpu, is_polled);
  MUST(hawser_agent_release(owner));
  allocator = (Allocator){.base = gpu, .allocations = 2};
  const hawser_agent again = open_agent("again", "mock0", flags, &allocator);
  test_segments(again, &allocator);
  MUST(hawser_agent_release(again));
  MUST(hawser_agent_release(user));
  free(gpu);
  if (checks_failed == 0) printf("all checks passed\n");
  return checks_failed == 0 ? 0 : 1;
}
