/* The smallest C program that uses an installed Hawser: two agents, one transfer. */

#include <hawser/c.h>
#include <stdio.h>
#include <string.h>

static int report(const char* what) {
  hawser_error error = HAWSER_INIT(hawser_error);
  hawser_last_error(&error);
  fprintf(stderr, "%s: %s\n", what, error.text);
  return 1;
}

static int open_agent(const char* name, hawser_agent* agent, hawser_region* region, char** bytes) {
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  hawser_region_options memory = HAWSER_INIT(hawser_region_options);
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  options.name = name;
  memory.name = "memory";
  memory.bytes = 4096;
  if (hawser_agent_open(&options, agent) || hawser_agent_allocate(*agent, &memory, region) ||
      hawser_region_info_get(*region, &info)) {
    return report("open");
  }
  *bytes = info.base;
  return 0;
}

int main(void) {
  hawser_agent a, b;
  hawser_region source, target;
  hawser_buffer card;
  hawser_peer peer;
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  char *from, *to;
  if (open_agent("a", &a, &source, &from) || open_agent("b", &b, &target, &to)) return 1;
  if (hawser_agent_card(b, &card) || hawser_agent_add_peer(a, card.data, card.size, &peer) ||
      hawser_peer_region(peer, "memory", &info)) {
    return report("meet");
  }
  hawser_buffer_free(&card);
  memcpy(from, "hello", 6);
  const hawser_local_range local = {source, 0, 6};
  const hawser_remote_range remote = {info.index, 0, 0, 6};
  hawser_plan plan;
  hawser_transfer transfer;
  if (hawser_plan_ranges(a, HAWSER_WRITE, peer, &local, &remote, 1, &plan) ||
      hawser_plan_submit(plan, NULL, &transfer) || hawser_transfer_wait(transfer, HAWSER_FOREVER)) {
    return report("write");
  }
  if (strcmp(to, "hello") != 0) return 1;
  printf("hawser %s\n", hawser_version());
  hawser_transfer_release(transfer);
  hawser_plan_release(plan);
  hawser_peer_release(peer);
  hawser_region_release(source);
  hawser_region_release(target);
  hawser_agent_release(a);
  hawser_agent_release(b);
  return 0;
}
