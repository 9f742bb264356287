# Debian packages by CPack, of a build that `./dev deb` configures with HAWSER_DEBIAN=ON for the prefix /usr: libhawser0,
# libhawser-dev, hawser (the command and its manual pages) and python3-hawser. Dependencies on other packages are found by
# dpkg-shlibdeps; the clock is SOURCE_DATE_EPOCH, so that the same source gives the same bytes.

set(documents share/doc)
foreach(package libhawser0 libhawser-dev hawser python3-hawser)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${documents}/${package} RENAME copyright COMPONENT ${package})
  install(FILES "${PROJECT_BINARY_DIR}/changelog.gz" DESTINATION ${documents}/${package} COMPONENT ${package})
endforeach()
install(DIRECTORY "${PROJECT_BINARY_DIR}/man/" DESTINATION share/man/man1 COMPONENT hawser FILES_MATCHING PATTERN "*.1.gz")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hawser)
set(CPACK_PACKAGE_VENDOR Hawser)
set(CPACK_PACKAGE_CONTACT "The founders of Hawser <hawser@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL libhawser0 libhawser-dev hawser python3-hawser)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(version "${PROJECT_VERSION}-1")
math(EXPR python_after "${Python_VERSION_MINOR} + 1")

# Opened at run time, for what is asked for: a program works without them.
set(opened "libgnutls30, libmicrohttpd12, libibverbs1, libcurl4")

set(CPACK_DEBIAN_LIBHAWSER0_PACKAGE_NAME libhawser0)
set(CPACK_DEBIAN_LIBHAWSER0_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBHAWSER0_PACKAGE_RECOMMENDS "libgnutls30")
list(JOIN HAWSER_NGTCP2_PACKAGES ", " quic)  # Of the version that this build opens; none without the backend.
set(CPACK_DEBIAN_LIBHAWSER0_PACKAGE_SUGGESTS "libmicrohttpd12, libibverbs1, libcurl4")
if(quic)
  string(APPEND CPACK_DEBIAN_LIBHAWSER0_PACKAGE_SUGGESTS ", ${quic}")
endif()
set(CPACK_DEBIAN_LIBHAWSER0_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBHAWSER0_DESCRIPTION "data movement for AI inference and training (library)
 Hawser moves KV-cache blocks, weights and gradients between host memory, GPU
 memory, files and other machines, over shared memory, TCP with TLS, and RDMA.
 This package has the library, and NIXL's C interface on it in a folder of its
 own.")

set(CPACK_DEBIAN_LIBHAWSER-DEV_PACKAGE_NAME libhawser-dev)
set(CPACK_DEBIAN_LIBHAWSER-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHAWSER-DEV_PACKAGE_DEPENDS "libhawser0 (= ${version})")
set(CPACK_DEBIAN_LIBHAWSER-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBHAWSER-DEV_DESCRIPTION "data movement for AI inference and training (headers)
 The C++ and C headers of Hawser, its CMake package and its pkg-config file.")

set(CPACK_DEBIAN_HAWSER_PACKAGE_NAME hawser)
set(CPACK_DEBIAN_HAWSER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_HAWSER_PACKAGE_RECOMMENDS "${opened}")
set(CPACK_DEBIAN_HAWSER_DESCRIPTION "data movement for AI inference and training (command line)
 The command `hawser`: looks at a machine, copies files, runs ranks, measures
 beside the machine's ceilings, and shows what agents do. With its manual pages.")

set(CPACK_DEBIAN_PYTHON3-HAWSER_PACKAGE_NAME python3-hawser)
set(CPACK_DEBIAN_PYTHON3-HAWSER_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON3-HAWSER_PACKAGE_DEPENDS
    "libhawser0 (= ${version}), python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}), python3 (<< ${Python_VERSION_MAJOR}.${python_after})")
set(CPACK_DEBIAN_PYTHON3-HAWSER_PACKAGE_SUGGESTS "python3-numpy")
set(CPACK_DEBIAN_PYTHON3-HAWSER_DESCRIPTION "data movement for AI inference and training (Python)
 Agents, worlds of ranks and remote buffers for Python, for NumPy arrays, buffers
 and torch tensors.")
include(CPack)
