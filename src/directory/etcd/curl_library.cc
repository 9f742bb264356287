#include "directory/etcd/curl_library.h"

#include "base/dylib.h"
#include "base/mutex.h"
#include "base/try.h"

namespace hawser::directory::etcd {
namespace {

template <typename T>
Status find(const base::Dylib& from, const char* name, T*& function) {
  HAWSER_TRY_ASSIGN(function, from.symbol<T>(name));
  return {};
}

Result<CurlLibrary> open_library() {
  // Either of Debian's flavours; their functions are the same.
  auto opened = base::Dylib::open({"libcurl.so.4", "libcurl-gnutls.so.4"});
  if (!opened) {
    return Status(Code::kNotFound, "etcd: libcurl is not installed")
        .because(opened.status())
        .with_advice("sudo apt-get install libcurl4");
  }
  base::Dylib& from = *opened;
  from.keep_loaded();
  CurlLibrary curl{};
  HAWSER_TRY(find(from, "curl_easy_init", curl.easy_init));
  HAWSER_TRY(find(from, "curl_easy_cleanup", curl.easy_cleanup));
  HAWSER_TRY(find(from, "curl_easy_reset", curl.easy_reset));
  HAWSER_TRY(find(from, "curl_easy_setopt", curl.set_option));
  HAWSER_TRY(find(from, "curl_easy_getinfo", curl.get_info));
  HAWSER_TRY(find(from, "curl_easy_strerror", curl.error_text));
  HAWSER_TRY(find(from, "curl_multi_init", curl.multi_init));
  HAWSER_TRY(find(from, "curl_multi_cleanup", curl.multi_cleanup));
  HAWSER_TRY(find(from, "curl_multi_add_handle", curl.multi_add));
  HAWSER_TRY(find(from, "curl_multi_remove_handle", curl.multi_remove));
  HAWSER_TRY(find(from, "curl_multi_perform", curl.multi_perform));
  HAWSER_TRY(find(from, "curl_multi_poll", curl.multi_poll));
  HAWSER_TRY(find(from, "curl_multi_wakeup", curl.multi_wakeup));
  HAWSER_TRY(find(from, "curl_multi_info_read", curl.multi_info_read));
  HAWSER_TRY(find(from, "curl_slist_append", curl.list_append));
  HAWSER_TRY(find(from, "curl_slist_free_all", curl.list_free));
  decltype(&::curl_global_init) global_init = nullptr;
  HAWSER_TRY(find(from, "curl_global_init", global_init));
  if (const CURLcode code = global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK) {
    return Status(Code::kFailed, std::string("etcd: libcurl does not start: ") + curl.error_text(code));
  }
  return curl;
}

}  // namespace

Result<const CurlLibrary*> CurlLibrary::load() {
  // libcurl asks for one initialisation in a process.
  static base::Mutex mutex;
  static const CurlLibrary* loaded = nullptr;
  base::MutexLock lock(mutex);
  if (loaded == nullptr) {
    HAWSER_TRY_ASSIGN(CurlLibrary curl, open_library());
    loaded = new CurlLibrary(curl);  // Never freed, like the library itself.
  }
  return loaded;
}

}  // namespace hawser::directory::etcd
