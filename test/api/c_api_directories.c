/* Directories of each kind, agents that meet in them, and a driver that runs several agents. */

#include "c_api.h"

/* Waits for the ticket's next event; its code is good. */
static hawser_directory_event next_event(hawser_directory directory, uint64_t ticket) {
  hawser_directory_event event = HAWSER_INIT(hawser_directory_event);
  MUST(hawser_directory_wait(directory, ticket, PATIENCE, &event));
  if (!event.present) {
    fprintf(stderr, "the directory did not answer\n");
    exit(1);
  }
  if (event.code != HAWSER_OK) fprintf(stderr, "the directory answered %d: %s\n", event.code, event.text);
  CHECK(event.code == HAWSER_OK && event.text[0] == '\0');
  return event;
}

/* The code that a request ended with; what it says must hold `part`. */
static int outcome_of(hawser_directory directory, uint64_t ticket, const char* part) {
  hawser_directory_event event = HAWSER_INIT(hawser_directory_event);
  MUST(hawser_directory_wait(directory, ticket, PATIENCE, &event));
  CHECK(event.present && strstr(event.text, part) != NULL);
  const int code = event.code;
  hawser_directory_event_clear(&event);
  CHECK(event.size == sizeof event && event.entries == NULL && !event.present);
  return code;
}

/* Puts and gives the new version. */
static uint64_t put(hawser_directory directory, const char* key, const char* value, const hawser_put_options* options) {
  uint64_t ticket = 0;
  MUST(hawser_directory_put(directory, key, value, strlen(value), options, &ticket));
  hawser_directory_event event = next_event(directory, ticket);
  CHECK(event.kind == HAWSER_DIRECTORY_ANSWER && event.count == 1 && strcmp(event.entries[0].key, key) == 0);
  const uint64_t version = event.entries[0].version;
  CHECK(version > 0);
  hawser_directory_event_clear(&event);
  return version;
}

static int put_code(hawser_directory directory, const char* key, const hawser_put_options* options, const char* part) {
  uint64_t ticket = 0;
  MUST(hawser_directory_put(directory, key, "x", 1, options, &ticket));
  return outcome_of(directory, ticket, part);
}

static void test_values(hawser_directory directory) {
  uint64_t ticket = 0;
  MUST(hawser_directory_get(directory, "c-api/a", &ticket));
  CHECK(outcome_of(directory, ticket, "c-api/a") == HAWSER_NOT_FOUND);
  const uint64_t first = put(directory, "c-api/a", "one", NULL);
  put(directory, "c-api/b", "", NULL);
  put(directory, "c-apia", "outside", NULL);

  hawser_put_options options = HAWSER_INIT(hawser_put_options);
  options.flags = HAWSER_PUT_CREATE_ONLY;
  CHECK(put_code(directory, "c-api/a", &options, "c-api/a") == HAWSER_BUSY);
  options.flags = HAWSER_PUT_IF_VERSION;
  CHECK(put_code(directory, "c-api/a", &options, "c-api/a") == HAWSER_BUSY); /* Version 0: it is not there. */
  options.if_version = first;
  const uint64_t second = put(directory, "c-api/a", "two", &options);
  CHECK(second > first);

  MUST(hawser_directory_get(directory, "c-api/a", &ticket));
  hawser_directory_event event = next_event(directory, ticket);
  CHECK(event.count == 1 && event.entries[0].version == second && event.entries[0].value_size == 3);
  CHECK(event.entries[0].key_size == 7 && strcmp(event.entries[0].value, "two") == 0);
  hawser_directory_event_clear(&event);
  MUST(hawser_directory_list(directory, "c-api/", &ticket));
  event = next_event(directory, ticket);
  CHECK(event.count == 2 && strcmp(event.entries[0].key, "c-api/a") == 0);
  CHECK(event.count == 2 && strcmp(event.entries[1].key, "c-api/b") == 0 && event.entries[1].value_size == 0);
  hawser_directory_event_clear(&event);

  MUST(hawser_directory_erase_if(directory, "c-api/a", first, &ticket)); /* It has another version by now. */
  CHECK(outcome_of(directory, ticket, "version") == HAWSER_BUSY);
  REFUSED(hawser_directory_erase_if(directory, NULL, first, &ticket), HAWSER_INVALID, "key is null");
  const uint64_t passing = put(directory, "c-api/c", "passing", NULL);
  MUST(hawser_directory_erase_if(directory, "c-api/c", passing, &ticket));
  CHECK(outcome_of(directory, ticket, "") == HAWSER_OK);

  MUST(hawser_directory_erase(directory, "c-apia", &ticket));
  event = next_event(directory, ticket);
  CHECK(event.count == 1);
  hawser_directory_event_clear(&event);
  MUST(hawser_directory_erase(directory, "c-apia", &ticket));
  event = next_event(directory, ticket);
  CHECK(event.count == 0);
  hawser_directory_event_clear(&event);
}

/* What a watch says goes into a picture: the values of two keys. */
static void look(hawser_directory directory, uint64_t watch, char* a, char* b, const char* want_a, const char* want_b) {
  for (int events = 0; strcmp(a, want_a) != 0 || strcmp(b, want_b) != 0; ++events) {
    CHECK(events < 100);
    if (events == 100) return;
    hawser_directory_event event = next_event(directory, watch);
    if (event.kind == HAWSER_DIRECTORY_ANSWER) a[0] = b[0] = '-', a[1] = b[1] = '\0'; /* All that there is. */
    for (size_t i = 0; i < event.count; ++i) {
      const char* value = event.kind == HAWSER_DIRECTORY_ERASED ? "-" : event.entries[i].value;
      snprintf(strcmp(event.entries[i].key, "c-api/a") == 0 ? a : b, 16, "%s", value);
    }
    hawser_directory_event_clear(&event);
  }
}

static void test_watches(hawser_directory directory) {
  uint64_t watch = 0, ticket = 0;
  char a[16] = "?", b[16] = "?";
  MUST(hawser_directory_watch(directory, "c-api/", &watch));
  look(directory, watch, a, b, "two", "");
  put(directory, "c-api/a", "three", NULL);
  look(directory, watch, a, b, "three", "");
  MUST(hawser_directory_erase(directory, "c-api/b", &ticket));
  hawser_directory_event event = next_event(directory, ticket);
  hawser_directory_event_clear(&event);
  look(directory, watch, a, b, "three", "-");
  /* Nothing more: good, and not present. */
  MUST(hawser_directory_wait(directory, watch, SECOND / 100, &event));
  CHECK(!event.present && event.count == 0 && event.entries == NULL);
  MUST(hawser_directory_cancel(directory, watch));
  put(directory, "c-api/a", "four", NULL);
  MUST(hawser_directory_wait(directory, watch, 0, &event));
  CHECK(!event.present);
  hawser_buffer warnings;
  MUST(hawser_directory_warnings(directory, &warnings));
  CHECK(warnings.data[0] == '[');
  hawser_buffer_free(&warnings);
}

static void test_wrong_requests(hawser_directory directory) {
  uint64_t ticket = 0;
  hawser_put_options options = HAWSER_INIT(hawser_put_options);
  hawser_directory_event event = {.size = 4};
  REFUSED(hawser_directory_put(directory, NULL, "", 0, NULL, &ticket), HAWSER_INVALID, "is null");
  REFUSED(hawser_directory_put(directory, "k", NULL, 1, NULL, &ticket), HAWSER_INVALID, "value is null");
  REFUSED(hawser_directory_put(directory, "k", "", 0, NULL, NULL), HAWSER_INVALID, "ticket is null");
  options.flags = 1u << 7;
  REFUSED(hawser_directory_put(directory, "k", "", 0, &options, &ticket), HAWSER_INVALID, "unknown bits");
  options.flags = 0;
  options.lease_ns = -1;
  REFUSED(hawser_directory_put(directory, "k", "", 0, &options, &ticket), HAWSER_INVALID, "negative");
  REFUSED(hawser_directory_get((hawser_directory){0}, "k", &ticket), HAWSER_INVALID, "is null");
  REFUSED(hawser_directory_wait(directory, 1, 0, &event), HAWSER_INVALID, "hawser_directory_event.size is 4");
  REFUSED(hawser_directory_wait(directory, 1, 0, NULL), HAWSER_INVALID, "null");
  REFUSED(hawser_directory_warnings(directory, NULL), HAWSER_INVALID, "null");
  CHECK(ticket == 0);
  MUST(hawser_directory_get(directory, "", &ticket)); /* A wrong request gets an answer as the others. */
  CHECK(outcome_of(directory, ticket, "key") == HAWSER_INVALID);
  hawser_directory_event_clear(NULL);
}

/* Agents that find each other by the directory, run by the threads of one driver. */
static void test_meeting(hawser_directory here, hawser_directory there) {
  hawser_driver_options with = HAWSER_INIT(hawser_driver_options);
  hawser_driver driver = {0};
  with.threads = 1000;
  REFUSED(hawser_driver_open(&with, &driver), HAWSER_INVALID, "threads = 1000");
  with.threads = 2;
  REFUSED(hawser_driver_open(&with, NULL), HAWSER_INVALID, "out is null");
  MUST(hawser_driver_open(&with, &driver));
  hawser_agent agents[3];
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  options.driver = driver;
  for (int i = 0; i < 3; ++i) {
    const char* names[] = {"first", "second", "third"};
    options.name = names[i];
    options.directory = i == 0 ? here : there;
    MUST(hawser_agent_open(&options, &agents[i]));
  }
  hawser_agent odd = {0};
  options.flags |= HAWSER_AGENT_POLLED;
  REFUSED(hawser_agent_open(&options, &odd), HAWSER_INVALID, "HAWSER_AGENT_POLLED");
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  options.spin_ns = 1;
  REFUSED(hawser_agent_open(&options, &odd), HAWSER_INVALID, "spin_ns");
  options.spin_ns = 0;
  options.directory.id = driver.id;
  REFUSED(hawser_agent_open(&options, &odd), HAWSER_INVALID, "another kind");
  MUST(hawser_driver_release(driver)); /* Its threads stay as long as an agent has them. */
  REFUSED(hawser_driver_release(driver), HAWSER_INVALID, "was released");
  options.directory = here;
  REFUSED(hawser_agent_open(&options, &odd), HAWSER_INVALID, "was released");

  hawser_peer peer;
  MUST(hawser_agent_find_peer(agents[0], "second", PATIENCE, &peer));
  MUST(hawser_peer_connect(peer, PATIENCE));
  MUST(hawser_peer_reconnect(peer));
  MUST(hawser_peer_release(peer));
  REFUSED(hawser_peer_reconnect(peer), HAWSER_INVALID, "was released");
  MUST(hawser_agent_release(agents[0]));
  MUST(hawser_agent_find_peer(agents[1], "third", PATIENCE, &peer)); /* The driver goes on with the others. */
  MUST(hawser_peer_connect(peer, PATIENCE));
  MUST(hawser_peer_release(peer));
  /* Found as soon as its card is there; its regions may be awaited. */
  const char* const regions[] = {"kv"};
  REFUSED(hawser_agent_find_peer_regions(agents[1], "third", regions, 1, SECOND / 20, &peer), HAWSER_NOT_FOUND, "'kv'");
  REFUSED(hawser_agent_find_peer_regions(agents[1], "third", NULL, 1, 0, &peer), HAWSER_INVALID, "regions is null");
  hawser_region region;
  hawser_region_options kv = HAWSER_INIT(hawser_region_options);
  kv.name = "kv";
  kv.bytes = 4096;
  MUST(hawser_agent_allocate(agents[2], &kv, &region));
  MUST(hawser_agent_find_peer_regions(agents[1], "third", regions, 1, PATIENCE, &peer));
  MUST(hawser_peer_await_regions(peer, regions, 1, 0));
  const char* const nothing[] = {NULL};
  REFUSED(hawser_peer_await_regions(peer, nothing, 1, 0), HAWSER_INVALID, "null");
  MUST(hawser_peer_release(peer));
  MUST(hawser_region_release(region));
  MUST(hawser_agent_close(agents[1], PATIENCE));
  MUST(hawser_agent_release(agents[1]));
  MUST(hawser_agent_release(agents[2]));
}

static void test_kind(hawser_directory directory, hawser_directory again) {
  test_values(directory);
  test_watches(directory);
  test_wrong_requests(directory);
  test_meeting(directory, again);
  MUST(hawser_directory_release(directory));
  REFUSED(hawser_directory_release(directory), HAWSER_INVALID, "was released");
  uint64_t ticket = 0;
  MUST(hawser_directory_get(again, "c-api/a", &ticket)); /* The other handle goes on. */
  hawser_directory_event event = next_event(again, ticket);
  CHECK(event.count == 1 && strcmp(event.entries[0].value, "four") == 0);
  hawser_directory_event_clear(&event);
  MUST(hawser_directory_erase(again, "c-api/a", &ticket));
  CHECK(outcome_of(again, ticket, "") == HAWSER_OK);
  MUST(hawser_directory_release(again));
}

void test_directories(void) {
  hawser_directory one = {0}, two = {0};
  REFUSED(hawser_directory_inproc("c-api", NULL), HAWSER_INVALID, "out is null");
  REFUSED(hawser_directory_folder(NULL, &one), HAWSER_INVALID, "path is null");
  REFUSED(hawser_directory_folder("/proc/nothing/here", &one), HAWSER_FAILED, "/proc/nothing");
  CHECK(one.id == 0);
  MUST(hawser_directory_inproc(NULL, &one));
  MUST(hawser_directory_inproc("default", &two));
  test_kind(one, two);
  char folder[256];
  make_scratch(folder, sizeof folder);
  MUST(hawser_directory_folder(folder, &one));
  MUST(hawser_directory_folder(folder, &two));
  test_kind(one, two);
  remove_scratch(folder);

  hawser_etcd_options options = HAWSER_INIT(hawser_etcd_options);
  options.endpoints = "one:2379,,two:2379";
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "endpoint");
  options.endpoints = NULL;
  options.lease_ns = -1;
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "negative");
  options.lease_ns = SECOND / 2;
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "lease");
  options = (hawser_etcd_options)HAWSER_INIT(hawser_etcd_options);
  options.ca = "/no/authority";
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "ca = \"/no/authority\"");
  options.ca = NULL;
  options.cert = options.key = "/no/key";
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "cert = ");
  options.cert = NULL;
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "cert and key");
  options.key = NULL;
  options.password = "secret";
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "without a user");
  options.password = NULL;
  options.timeout_ns = 5;
  REFUSED(hawser_directory_etcd(&options, &one), HAWSER_INVALID, "timeout of 5 ns");
  REFUSED(hawser_directory_etcd(&options, NULL), HAWSER_INVALID, "out is null");
}

/* With a server that listens at `endpoint`: all of the above, and an agent that names it in its settings. */
void test_etcd(const char* endpoint) {
  char both[256], text[256];
  snprintf(both, sizeof both, "127.0.0.1:1,%s", endpoint); /* One that does not answer is passed over. */
  hawser_etcd_options options = HAWSER_INIT(hawser_etcd_options);
  options.endpoints = both;
  options.prefix = "c-tests/";
  options.lease_ns = 5 * SECOND;
  options.timeout_ns = 20 * SECOND;
  hawser_directory one, two;
  MUST(hawser_directory_etcd(&options, &one));
  MUST(hawser_directory_etcd(&options, &two));
  hawser_put_options tied = HAWSER_INIT(hawser_put_options);
  tied.flags = HAWSER_PUT_TIED;
  put(one, "tied", "to one", &tied);

  snprintf(text, sizeof text, "etcd://%s/c-tests/", endpoint);
  const hawser_param settings[] = {{"directory", text}, {"etcd.lease", "5s"}};
  hawser_agent_options with = HAWSER_INIT(hawser_agent_options);
  with.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  with.name = "by settings";
  with.settings = settings;
  with.setting_count = 2;
  hawser_agent by_settings, by_handle;
  hawser_peer peer;
  MUST(hawser_agent_open(&with, &by_settings));
  with.setting_count = 0;
  with.name = "by handle";
  with.directory = two;
  MUST(hawser_agent_open(&with, &by_handle));
  MUST(hawser_agent_find_peer(by_handle, "by settings", PATIENCE, &peer));
  MUST(hawser_peer_release(peer));
  MUST(hawser_agent_find_peer(by_settings, "by handle", PATIENCE, &peer));
  MUST(hawser_peer_release(peer));
  MUST(hawser_agent_release(by_handle));
  MUST(hawser_agent_release(by_settings));
  test_kind(one, two);

  /* What was tied went with its handle, or goes with its lease when that farewell was lost on a busy machine. */
  MUST(hawser_directory_etcd(&options, &one));
  uint64_t watch = 0;
  MUST(hawser_directory_watch(one, "tied", &watch));
  for (int is_there = 1; is_there;) {
    hawser_directory_event event = next_event(one, watch);
    is_there = event.kind != HAWSER_DIRECTORY_ERASED && event.count > 0;
    hawser_directory_event_clear(&event);
  }
  MUST(hawser_directory_cancel(one, watch));
  MUST(hawser_directory_release(one));
}
