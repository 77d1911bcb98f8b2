# SPDX-License-Identifier: Apache-2.0
#
# `cpack -G DEB` in the build folder packages the installed files as kiln_VERSION_ARCHITECTURE.deb.
set(kiln_documents "${CMAKE_INSTALL_DATAROOTDIR}/doc/kiln")
install(FILES LICENSE DESTINATION "${kiln_documents}" RENAME copyright)
install(FILES NOTICE DESTINATION "${kiln_documents}")
# Headers that become part of the program and of the library, whose licences require attribution.
foreach(package libcli11-dev libhalide14-0-dev libhalide19-dev libhalide21-dev)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${kiln_documents}" RENAME copyright.${package})
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_CONTACT "The authors of Kiln")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles transformer models to static libraries")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE) # independent of the umask
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"A model, written as a small C++20 program, becomes a static library and a
header that any C or C++ program links and calls. This package has the
language, the compiler, the command kiln, and kiln_add_library() for CMake.")
# dpkg-shlibdeps finds the shared libraries, but not reliably LLVM's, which has a symbolic link in llvm-22-dev. In
# addition a C++ compiler is required, which compiles specs and provides the linker; the archiver and the runtimes of
# all architectures are in Kiln's library. CMake is for kiln_add_library(); the other packages link programs for other
# architectures.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libllvm22, g++ (>= 4:12) | c++-compiler")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake (>= 3.25), ninja-build | make, pkgconf")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "g++-aarch64-linux-gnu, g++-riscv64-linux-gnu, clang-22, lld-22, wasi-libc, libclang-rt-22-dev-wasm32")
include(CPack)
