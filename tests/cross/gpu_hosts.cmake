# SPDX-License-Identifier: Apache-2.0
#
# A library for GPUs whose host code is for aarch64 (Grace, Jetson): linked and run by an emulator, without a driver and
# with the fake driver of tools/fake-cuda, compiled for aarch64.
if(NOT aarch64_objects OR NOT KILN_CROSS_CC_aarch64 OR NOT TARGET pair_generator)
  return()
endif()
find_path(KILN_FMT_HEADERS fmt/format.h)
set(folder "${CMAKE_CURRENT_BINARY_DIR}/aarch64/fake_cuda")
# fmt without its library; a link, since the cross compiler must not see this machine's other headers.
file(MAKE_DIRECTORY "${folder}/include")
file(CREATE_LINK "${KILN_FMT_HEADERS}/fmt" "${folder}/include/fmt" SYMBOLIC)

# Several sources at a time, as in the unity build of the preset dev.
set(objects "")
set(number 0)
foreach(library kiln_ptx kiln_fake_cuda_objects)
  get_target_property(sources ${library} SOURCES)
  get_target_property(source_folder ${library} SOURCE_DIR)
  list(REMOVE_ITEM sources Integers.cpp) # it has the names of Floats.cpp
  list(TRANSFORM sources PREPEND "${source_folder}/")
  set(batches "")
  while(sources)
    list(SUBLIST sources 0 8 batch)
    list(REMOVE_ITEM sources ${batch})
    list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN batch "" text)
    set(unity "${folder}/batch_${number}.cpp")
    file(CONFIGURE OUTPUT "${unity}" CONTENT "${text}" @ONLY)
    list(APPEND batches "${unity}")
    math(EXPR number "${number} + 1")
  endwhile()
  if(library STREQUAL kiln_ptx)
    list(APPEND batches "${source_folder}/Integers.cpp")
    set(ptx_folder "${source_folder}")
  endif()
  foreach(source ${batches})
    get_filename_component(name "${source}" NAME_WE)
    set(object "${folder}/${name}.o")
    add_custom_command(OUTPUT "${object}"
      COMMAND ${aarch64_compile} -std=c++20 -O0 -fPIC -fvisibility=hidden -DFMT_HEADER_ONLY -I "${folder}/include"
        -I "${ptx_folder}" -MD -MF "${object}.d" -c "${source}" -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d" COMMENT "Compiling the fake CUDA driver for aarch64" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
endforeach()
set(driver "${folder}/libcuda.so.1")
set(exports "${PROJECT_SOURCE_DIR}/tools/fake-cuda/driver/exports.map")
add_custom_command(OUTPUT "${driver}"
  COMMAND ${aarch64_compile} -shared ${objects} "-Wl,--version-script=${exports}" -Wl,-z,nodelete -o "${driver}"
  DEPENDS ${objects} "${exports}" COMMENT "Linking the fake CUDA driver for aarch64" VERBATIM)
add_custom_target(cross_aarch64_fake_cuda ALL DEPENDS "${driver}")

kiln_add_library(pair_gpu_aarch64 GENERATOR pair_generator LIBRARY pair TARGETS cuda aarch64)
get_target_property(archive pair_gpu_aarch64 KILN_ARCHIVE)
add_custom_target(cross_aarch64_gpu ALL DEPENDS "${archive}")
kiln_test(cross.aarch64.gpu COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/gpu_hosts.sh" "${archive}"
  "${PROJECT_SOURCE_DIR}/tests/package/consumer/main.c" "${driver}" "${KILN_CROSS_CC_aarch64}" ${aarch64_run}
  PROPERTIES TIMEOUT 300)
