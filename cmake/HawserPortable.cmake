# Third-party code inside of the binaries, which then need nothing of a system but its glibc. `./dev wheel` builds so, by
# a compiler for an old glibc that links its C++ library statically. Header-only libraries are compiled in, the others
# are linked from Debian's static archives, and libhawser.map hides their symbols. Their licences go along.

set(headers "${PROJECT_BINARY_DIR}/third_party/include")
file(REMOVE_RECURSE "${headers}")
set(HAWSER_LICENSES "")

# _hawser_take(<Debian package> <header or folder>...): links these into a folder of their own. The folders that they lie
# in have the headers of the system's own C library, too, which a compiler for another one must not see.
set(header_folders /usr/include "/usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu")
function(_hawser_take package)
  foreach(name IN LISTS ARGN)
    set(found "")
    foreach(folder IN LISTS header_folders)
      if(IS_DIRECTORY "${folder}/${name}")
        file(GLOB entries RELATIVE "${folder}" "${folder}/${name}/*")
        list(APPEND found ${entries})
        file(MAKE_DIRECTORY "${headers}/${name}")
      elseif(EXISTS "${folder}/${name}")
        set(entries "${name}")
        list(APPEND found "${name}")
        file(MAKE_DIRECTORY "${headers}")
      else()
        set(entries "")
      endif()
      foreach(entry IN LISTS entries)
        file(CREATE_LINK "${folder}/${entry}" "${headers}/${entry}" SYMBOLIC)
      endforeach()
    endforeach()
    if(NOT found)
      message(FATAL_ERROR "There is no ${name} in ${header_folders}: install ${package}")
    endif()
  endforeach()
  list(APPEND HAWSER_LICENSES "${package}")
  set(HAWSER_LICENSES "${HAWSER_LICENSES}" PARENT_SCOPE)
endfunction()

_hawser_take(libfmt-dev fmt)
_hawser_take(nlohmann-json3-dev nlohmann)
_hawser_take(libcli11-dev CLI)
_hawser_take(libtomlplusplus-dev toml++)
_hawser_take(libxxhash-dev xxhash.h)
_hawser_take(libsodium-dev sodium.h sodium)
_hawser_take(liburing-dev liburing.h liburing)
_hawser_take(libhwloc-dev hwloc.h hwloc)
_hawser_take(libibverbs-dev infiniband rdma)
_hawser_take(libcurl4-openssl-dev curl)
_hawser_take(libgnutls28-dev gnutls)
_hawser_take(libmicrohttpd-dev microhttpd.h)
_hawser_take(libngtcp2-dev ngtcp2)

# For another kind of machine the archives lie elsewhere. Headers are the same for both, but for one of Python's.
set(HAWSER_STATIC_FOLDER "/usr/lib/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu" CACHE PATH "Where the static archives are")

# Debian's Python.h takes it from there.
file(GLOB pythons "${HAWSER_STATIC_FOLDER}/../../include/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/python3*")
file(MAKE_DIRECTORY "${headers}/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu")
foreach(python IN LISTS pythons)
  get_filename_component(name "${python}" NAME)
  file(CREATE_LINK "${python}" "${headers}/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/${name}" SYMBOLIC)
endforeach()
include_directories(SYSTEM "${headers}")

foreach(name sodium uring hwloc)
  find_library(HAWSER_STATIC_${name} "lib${name}.a" REQUIRED PATHS "${HAWSER_STATIC_FOLDER}" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
endforeach()

# Debian's hwloc asks udev for the names of disks, and does without where udev does not answer.
add_library(hawser_no_udev STATIC "${PROJECT_SOURCE_DIR}/cmake/no_udev.c")

hawser_dependency(fmt DEFINE FMT_HEADER_ONLY)
hawser_dependency(json)
hawser_dependency(cli11)
hawser_dependency(toml DEFINE TOML_HEADER_ONLY=1)
hawser_dependency(sodium LINK "${HAWSER_STATIC_sodium}")
hawser_dependency(uring LINK "${HAWSER_STATIC_uring}")
hawser_dependency(hwloc LINK "${HAWSER_STATIC_hwloc}" hawser_no_udev m)
hawser_dependency(curl_headers)
hawser_dependency(ibverbs_headers)
hawser_dependency(gnutls_headers)
hawser_dependency(microhttpd_headers)

# ngtcp2 is opened at run time like GnuTLS, which its binding needs, but few systems have it: these files of Debian's go
# along, and need GnuTLS and an older glibc than this.
set(HAWSER_NGTCP2_INCLUDE_DIR "${headers}")
include(HawserNgtcp2)
hawser_ngtcp2_headers(DEFINE HAWSER_NGTCP2_BUNDLED)
foreach(library IN LISTS HAWSER_NGTCP2_LIBRARIES)
  if(NOT EXISTS "${HAWSER_STATIC_FOLDER}/${library}")
    message(FATAL_ERROR "There is no ${library} in ${HAWSER_STATIC_FOLDER}: install ${HAWSER_NGTCP2_PACKAGES}")
  endif()
  file(REAL_PATH "${HAWSER_STATIC_FOLDER}/${library}" file)
  list(APPEND HAWSER_BUNDLED "${file}" "${library}")
endforeach()
