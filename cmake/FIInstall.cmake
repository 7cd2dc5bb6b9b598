#===- FIInstall.cmake - what `cmake --install` makes ------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   <prefix>/bin            the tools
#   <prefix>/lib            components of the compiler as archives; the runtime and
#                           the emulator, shared and as archives
#   <prefix>/include        fi, fi-runtime, fi-emulator: headers, .td files,
#                           and what TableGen made of these
#   <prefix>/lib/cmake/FI   find_package(FI)
#   <prefix>/share/fi       examples
#
# Nothing names the prefix, so it may be moved. Libraries and tools are installed
# where they are defined (add_fi_library, add_fi_tool). docs/embedding.md is the
# manual.
#
#===--------------------------------------------------------------------------===#
include(CMakePackageConfigHelpers)

set(_fi_config_dir lib/cmake/FI)
install(EXPORT FIRuntimeTargets NAMESPACE FI:: DESTINATION ${_fi_config_dir})
if(FI_BUILD_COMPILER)
  install(TARGETS fi_headers EXPORT FICompilerTargets)
  install(TARGETS fi_lld_stubs EXPORT FICompilerTargets ARCHIVE DESTINATION lib)
  install(EXPORT FICompilerTargets NAMESPACE FI:: DESTINATION ${_fi_config_dir})
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/FILLVM.cmake" DESTINATION ${_fi_config_dir})
  # Random programs and replays of traces are no part of the interface.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/fi" DESTINATION include
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN Fuzz EXCLUDE PATTERN Replay EXCLUDE)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/include/fi" DESTINATION include
    FILES_MATCHING PATTERN "*.inc" PATTERN CMakeFiles EXCLUDE)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION share/fi)
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/FIConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/cmake/FIConfig.cmake" INSTALL_DESTINATION ${_fi_config_dir})
# No promise between minor versions yet.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/FIConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/FIConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/FIConfigVersion.cmake"
  DESTINATION ${_fi_config_dir})
