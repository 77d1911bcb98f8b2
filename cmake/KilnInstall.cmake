# SPDX-License-Identifier: Apache-2.0
#
# The contents of `cmake --install`: the compiler's library and command, the headers of the DSL and of the runtime,
# find_package(Kiln) and kiln.pc.
include(CMakePackageConfigHelpers)

set_target_properties(kiln_dsl PROPERTIES EXPORT_NAME dsl)
set_target_properties(kiln_compiler PROPERTIES EXPORT_NAME compiler)
set_target_properties(kiln PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
if(NOT KILN_STATIC) # LLVM 22 is in a separate folder
  set_target_properties(kiln_compiler PROPERTIES INSTALL_RPATH "$ORIGIN;${KILN_LLVM_LIBRARY_DIR}")
endif()
install(TARGETS kiln_dsl kiln_compiler kiln EXPORT KilnTargets)
install(TARGETS kiln_diagnose)
install(DIRECTORY dsl/include/ compiler/include/ runtime/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING
  PATTERN "*.h" PATTERN "*.def")
set(kiln_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Kiln")
install(EXPORT KilnTargets NAMESPACE kiln:: DESTINATION ${kiln_package_folder})
configure_package_config_file(cmake/KilnConfig.cmake.in "${PROJECT_BINARY_DIR}/KilnConfig.cmake"
  INSTALL_DESTINATION ${kiln_package_folder})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/KilnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/KilnConfig.cmake" "${PROJECT_BINARY_DIR}/KilnConfigVersion.cmake"
  cmake/KilnAddLibrary.cmake DESTINATION ${kiln_package_folder})

# The relative path from kiln.pc to the prefix, so that the tree can be moved.
file(RELATIVE_PATH kiln_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/kiln.pc.in "${PROJECT_BINARY_DIR}/kiln.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/kiln.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(PROGRAMS tools/xcframework.py DESTINATION "${CMAKE_INSTALL_DATADIR}/kiln")
