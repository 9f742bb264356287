# Third-party libraries under one set of names, dep::<name>, whatever their packages call them. A build of some layers
# (HAWSER_ONLY_LAYERS) has the header-only ones alone; asking for another there is an error that names it.
# `./dev install-deps` installs them all.

function(hawser_dependency name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;DEFINE")
  add_library(dep_${name} INTERFACE)
  target_link_libraries(dep_${name} INTERFACE ${arg_LINK})
  target_compile_definitions(dep_${name} INTERFACE ${arg_DEFINE})
  add_library(dep::${name} ALIAS dep_${name})
endfunction()

# xxHash is compiled into its user on every platform, so its symbols never meet another copy in the process.
hawser_dependency(xxhash DEFINE XXH_INLINE_ALL)

if(HAWSER_ONLY_LAYERS)
  hawser_dependency(fmt DEFINE FMT_HEADER_ONLY)
  hawser_dependency(json)
  return()
endif()
if(HAWSER_PORTABLE)
  include(HawserPortable)
  return()
endif()

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)

# Opened at run time, so their headers alone are used.
find_path(HAWSER_CURL_INCLUDE_DIR curl/curl.h REQUIRED)
hawser_dependency(curl_headers)
target_include_directories(dep_curl_headers SYSTEM INTERFACE "${HAWSER_CURL_INCLUDE_DIR}")

find_path(HAWSER_IBVERBS_INCLUDE_DIR infiniband/verbs.h REQUIRED)
hawser_dependency(ibverbs_headers)
target_include_directories(dep_ibverbs_headers SYSTEM INTERFACE "${HAWSER_IBVERBS_INCLUDE_DIR}")

find_path(HAWSER_GNUTLS_INCLUDE_DIR gnutls/gnutls.h REQUIRED)
hawser_dependency(gnutls_headers)
target_include_directories(dep_gnutls_headers SYSTEM INTERFACE "${HAWSER_GNUTLS_INCLUDE_DIR}")

# The one optional part.
find_path(HAWSER_NGTCP2_INCLUDE_DIR ngtcp2/ngtcp2_crypto_gnutls.h)
include(HawserNgtcp2)
hawser_ngtcp2_headers()

find_path(HAWSER_MICROHTTPD_INCLUDE_DIR microhttpd.h REQUIRED)
hawser_dependency(microhttpd_headers)
target_include_directories(dep_microhttpd_headers SYSTEM INTERFACE "${HAWSER_MICROHTTPD_INCLUDE_DIR}")

hawser_dependency(fmt LINK fmt::fmt)
hawser_dependency(json LINK nlohmann_json::nlohmann_json)
hawser_dependency(cli11 LINK CLI11::CLI11)
hawser_dependency(toml LINK tomlplusplus::tomlplusplus)
hawser_dependency(hwloc LINK PkgConfig::hwloc)
hawser_dependency(uring LINK PkgConfig::uring)
hawser_dependency(sodium LINK PkgConfig::sodium)
