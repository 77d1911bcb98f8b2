# SPDX-License-Identifier: Apache-2.0
#
# After all other install rules: `cmake --install` writes the list of what it installed to PREFIX/share/kiln, relative to
# the prefix, so that the tree can be moved. uninstall.sh removes what the list names. What an earlier installation to
# the same prefix wrote and this one did not stays in the list.
install(CODE [=[
  set(kiln_list "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/kiln/installed.txt")
  set(kiln_files share/kiln/installed.txt)
  if(EXISTS "${kiln_list}")
    file(STRINGS "${kiln_list}" kiln_earlier)
    foreach(kiln_file IN LISTS kiln_earlier)
      if(EXISTS "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${kiln_file}")
        list(APPEND kiln_files "${kiln_file}")
      endif()
    endforeach()
  endif()
  foreach(kiln_file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    cmake_path(IS_PREFIX CMAKE_INSTALL_PREFIX "${kiln_file}" NORMALIZE kiln_is_inside)
    if(kiln_is_inside)
      cmake_path(RELATIVE_PATH kiln_file BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
      list(APPEND kiln_files "${kiln_file}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES kiln_files)
  list(SORT kiln_files)
  list(JOIN kiln_files "\n" kiln_text)
  file(WRITE "${kiln_list}" "${kiln_text}\n")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_PREFIX}/share/kiln/installed.txt")
]=])
