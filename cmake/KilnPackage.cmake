# SPDX-License-Identifier: Apache-2.0
#
# The documents of an installed Kiln. The scripts in cmake/package/ make packages of the installed files.
set(kiln_documents "${CMAKE_INSTALL_DATAROOTDIR}/doc/kiln")
install(FILES LICENSE DESTINATION "${kiln_documents}" RENAME copyright)
install(FILES NOTICE DESTINATION "${kiln_documents}")
# Headers that become part of the program and of the library, whose licences require attribution.
foreach(package libcli11-dev libhalide14-0-dev libhalide19-dev libhalide21-dev)
  if(NOT KILN_STATIC AND EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${kiln_documents}" RENAME copyright.${package})
  endif()
endforeach()
