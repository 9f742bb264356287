/* Notifications in the program nixl_peer. */

#include <stdlib.h>
#include <string.h>

#include "nixl_peer.h"

/* What a notification of that size holds; any byte, and the same in each process. */
static unsigned char* text_of(size_t size, unsigned seed) {
  unsigned char* const text = malloc(size + 1);
  for (size_t i = 0; i < size; ++i) text[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
  return text;
}

static unsigned long long digest(const unsigned char* bytes, size_t size) {
  unsigned long long hash = 14695981039346656037ull; /* FNV-1a. */
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

/* digest SIZE SEED: what `take` will say of such a notification. */
static void say_digest(char** words) {
  const size_t size = strtoull(words[1], NULL, 0);
  unsigned char* const text = text_of(size, (unsigned)atoi(words[2]));
  say("%zu:%016llx", size, digest(text, size));
  free(text);
}

/* notify PEER SIZE SEED */
static void notify(Its* at, char** words) {
  const size_t size = strtoull(words[2], NULL, 0);
  unsigned char* const text = text_of(size, (unsigned)atoi(words[3]));
  say("%d", nixl_capi_gen_notif(at->agent, words[1], text, size, NULL));
  free(text);
}

/* tell SIZE SEED: posts the request with that notification. */
static void post_and_tell(Its* at, char** words) {
  const size_t size = strtoull(words[1], NULL, 0);
  unsigned char* const text = text_of(size, (unsigned)atoi(words[2]));
  nixl_capi_opt_args_t opt;
  MUST(nixl_capi_create_opt_args(&opt));
  MUST(nixl_capi_opt_args_set_notif_msg(opt, text, size));
  MUST(nixl_capi_opt_args_set_has_notif(opt, true));
  say("%d", nixl_capi_post_xfer_req(at->agent, at->request, opt));
  MUST(nixl_capi_destroy_opt_args(opt));
  free(text);
}

/* take: what came, as "PEER SIZE:DIGEST ..."; nothing when nothing did. */
static void take(Its* at) {
  nixl_capi_notif_map_t map;
  size_t agents = 0;
  MUST(nixl_capi_create_notif_map(&map));
  MUST(nixl_capi_get_notifs(at->agent, map, NULL));
  MUST(nixl_capi_notif_map_size(map, &agents));
  for (size_t i = 0; i < agents; ++i) {
    const char* name = NULL;
    size_t count = 0;
    MUST(nixl_capi_notif_map_get_agent_at(map, i, &name));
    MUST(nixl_capi_notif_map_get_notifs_size(map, name, &count));
    for (size_t j = 0; j < count; ++j) {
      const void* data = NULL;
      size_t len = 0;
      MUST(nixl_capi_notif_map_get_notif(map, name, j, &data, &len));
      say("%s %zu:%016llx ", name, len, digest(data, len));
    }
  }
  MUST(nixl_capi_destroy_notif_map(map));
}

int act_on_notifications(Its* at, char** words) {
  if (strcmp(words[0], "digest") == 0) {
    say_digest(words);
  } else if (strcmp(words[0], "notify") == 0) {
    notify(at, words);
  } else if (strcmp(words[0], "tell") == 0) {
    post_and_tell(at, words);
  } else if (strcmp(words[0], "take") == 0) {
    take(at);
  } else {
    return 0;
  }
  return 1;
}
