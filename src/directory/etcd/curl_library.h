#pragma once

// CurlLibrary: libcurl, opened at run time, so that programs run where it is not installed.
//
// Thread rule: immutable once loaded. Lifetime: stays loaded until the process ends, as libcurl and its TLS have state
// of the process.

#include <curl/curl.h>

#include <hawser/status.h>

namespace hawser::directory::etcd {

struct CurlLibrary {
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) set_option;
  decltype(&::curl_easy_getinfo) get_info;
  decltype(&::curl_easy_strerror) error_text;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_add_handle) multi_add;
  decltype(&::curl_multi_remove_handle) multi_remove;
  decltype(&::curl_multi_perform) multi_perform;
  decltype(&::curl_multi_poll) multi_poll;
  decltype(&::curl_multi_wakeup) multi_wakeup;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_slist_append) list_append;
  decltype(&::curl_slist_free_all) list_free;

  /// The one of this process. kNotFound says what to install.
  static Result<const CurlLibrary*> load();
};

}  // namespace hawser::directory::etcd
