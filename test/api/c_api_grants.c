/* Grants and unlisted regions. */

#include "c_api.h"

static hawser_granted import_by(hawser_agent agent, hawser_grant grant) {
  hawser_buffer bytes;
  hawser_granted granted;
  MUST(hawser_grant_bytes(grant, &bytes));
  MUST(hawser_agent_import_grant(agent, bytes.data, bytes.size, &granted));
  hawser_buffer_free(&bytes);
  return granted;
}

static int write_into(const Pair* pair, hawser_granted granted) {
  const uint32_t first = 0;
  hawser_table ours, theirs;
  hawser_plan plan;
  hawser_transfer transfer = {0};
  MUST(hawser_region_blocks(pair->source, kBlock, &ours));
  MUST(hawser_granted_blocks(granted, kBlock, &theirs));
  MUST(hawser_plan_tables(pair->a, HAWSER_WRITE, pair->to_b, ours, &first, theirs, &first, 1, &plan));
  const int refused = hawser_plan_submit(plan, NULL, &transfer);
  const int ended = refused != HAWSER_OK ? refused : finish(pair, transfer);
  if (refused == HAWSER_OK) MUST(hawser_transfer_release(transfer));
  MUST(hawser_plan_release(plan));
  MUST(hawser_table_release(theirs));
  MUST(hawser_table_release(ours));
  return ended;
}

static void test_wrong_grants(const Pair* pair, hawser_grant_options options) {
  hawser_grant grant = {0};
  hawser_granted granted = {0};
  REFUSED(hawser_region_grant(pair->target, NULL, &grant), HAWSER_INVALID, "options is null");
  REFUSED(hawser_region_grant(pair->target, &options, NULL), HAWSER_INVALID, "out is null");
  hawser_grant_options wrong = options;
  wrong.bytes = kRegionBytes + 1;
  REFUSED(hawser_region_grant(pair->target, &wrong, &grant), HAWSER_INVALID, "leave the region");
  wrong = options;
  wrong.expiry_ns = 0;
  REFUSED(hawser_region_grant(pair->target, &wrong, &grant), HAWSER_INVALID, "expiry");
  wrong = options;
  wrong.single_use = 2;
  REFUSED(hawser_region_grant(pair->target, &wrong, &grant), HAWSER_INVALID, "single_use = 2");
  wrong = options;
  wrong.peer = pair->to_b;
  REFUSED(hawser_region_grant(pair->target, &wrong, &grant), HAWSER_INVALID, "another agent");
  REFUSED(hawser_agent_import_grant(pair->a, "garbage", 7, &granted), HAWSER_CORRUPT, "");
  REFUSED(hawser_peer_import_grant(pair->to_b, NULL, 7, &granted), HAWSER_INVALID, "bytes is null");
  CHECK(grant.id == 0 && granted.id == 0);
}

static void test_unlisted(const Pair* pair) {
  uint64_t before = 0, after = 0;
  hawser_region_options options = HAWSER_INIT(hawser_region_options);
  options.name = "target"; /* As a listed one. */
  options.bytes = kBlock;
  options.unlisted = 1;
  hawser_region region = {0};
  MUST(hawser_agent_card_revision(pair->b, &before));
  MUST(hawser_agent_allocate(pair->b, &options, &region));
  MUST(hawser_agent_card_revision(pair->b, &after));
  CHECK(before == after);
  MUST(hawser_region_close(region, PATIENCE));
  MUST(hawser_region_release(region));
  options.unlisted = 2;
  REFUSED(hawser_agent_allocate(pair->b, &options, &region), HAWSER_INVALID, "unlisted = 2");
}

void test_grants(const Pair* pair) {
  test_unlisted(pair);
  hawser_grant_options options = HAWSER_INIT(hawser_grant_options);
  options.offset = kBlock;
  options.bytes = kBlock;
  options.expiry_ns = HAWSER_FOREVER;
  test_wrong_grants(pair, options);

  hawser_grant grant;
  MUST(hawser_region_grant(pair->target, &options, &grant));
  hawser_granted granted = import_by(pair->a, grant);
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  MUST(hawser_granted_info_get(granted, &info));
  CHECK(info.bytes == kBlock && info.rights == HAWSER_RIGHTS_READ_WRITE && strcmp(info.name, "target") == 0);
  hawser_peer owner;
  MUST(hawser_granted_peer(granted, &owner));
  MUST(hawser_peer_release(owner));
  const hawser_strided_range beyond = {.offset = 1, .size = kBlock, .stride = 0, .count = 1};
  hawser_table table = {0};
  REFUSED(hawser_granted_table(granted, &beyond, 1, &table), HAWSER_INVALID, "target");

  char* const source = info_of(pair->source).base;
  const char* const target = info_of(pair->target).base;
  fill(source, kBlock, 11);
  MUST(write_into(pair, granted));
  CHECK(memcmp(source, target + kBlock, kBlock) == 0);
  int ended = -1;
  MUST(hawser_grant_ended(grant, &ended));
  CHECK(ended == 0);
  MUST(hawser_grant_revoke(grant, PATIENCE));
  MUST(hawser_grant_ended(grant, &ended));
  CHECK(ended == 1);
  CHECK(write_into(pair, granted) == HAWSER_DENIED);
  MUST(hawser_granted_release(granted));
  MUST(hawser_grant_release(grant));
  REFUSED(hawser_grant_revoke(grant, 0), HAWSER_INVALID, "was released");

  options.single_use = 1;
  options.peer = know(pair->b, pair->a);
  MUST(hawser_region_grant(pair->target, &options, &grant));
  MUST(hawser_peer_release(options.peer));
  granted = import_by(pair->a, grant);
  MUST(write_into(pair, granted));
  CHECK(write_into(pair, granted) == HAWSER_DENIED);
  MUST(hawser_granted_release(granted));
  for (ended = 0; !ended; pass(pair)) MUST(hawser_grant_ended(grant, &ended));
  MUST(hawser_grant_release(grant));
}
