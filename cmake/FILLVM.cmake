#===- FILLVM.cmake - LLVM and MLIR for fi and for who embeds it -------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# Included by the build behind find_package(MLIR), and by the installed
# FIConfig.cmake. Defines
#
#   fi_llvm_headers   interface: include directories and definitions
#   fi_llvm           interface: fi_llvm_headers and the component archives that a
#                     tool may use, with the flags that drop what it does not use
#   fi_llvm_dylib     interface: fi_llvm_headers and the shared libraries instead,
#                     for what is loaded beside them (plugins of mlir-opt)
#   fi_lld            interface: liblld's ELF driver, to link shared objects in process
#
# The shared libMLIR costs 30 to 60 ms of relocation at each start of a tool; the
# archives cost none. They are named by path, not as imported targets, because lld
# finds symbols in any order of archives and reads only the indices of those that it
# does not use: no dependency list has to be kept in step with the dialects used.
#
# FI_LLD_STUBS names the target of what lld refers to and nobody needs.
#
#===--------------------------------------------------------------------------===#
# Dialects, conversions and passes that fi uses come from all over MLIR, so all of
# its archives are offered except test code, the C API, and what belongs to tools
# of MLIR itself.
file(GLOB _fi_mlir_archives "${LLVM_LIBRARY_DIR}/libMLIR*.a")
list(FILTER _fi_mlir_archives EXCLUDE REGEX
  "/libMLIR(CAPI|Test|[A-Za-z]*TestPasses|ShardTest|Reduce|Query|PDLL|MlirOptMain|Tblgen|TableGen|JitRunner|ExecutionEngine|SparseTensorRuntime)[A-Za-z0-9]*\\.a$")

# The LLVM components and all that they depend on.
execute_process(
  COMMAND "${LLVM_TOOLS_BINARY_DIR}/llvm-config" --link-static --libfiles
          x86 nvptx passes orcjit irreader bitwriter linker lto dtlto option
          interfacestub
          frontendopenmp frontendoffloading frontendopenacc remarks
  OUTPUT_VARIABLE _fi_llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(_fi_llvm_archives NATIVE_COMMAND "${_fi_llvm_archives}")
# The distribution packages Polly apart, and nothing here refers to it.
list(FILTER _fi_llvm_archives EXCLUDE REGEX "/libPolly")
list(REMOVE_DUPLICATES _fi_llvm_archives)

separate_arguments(_fi_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(TRANSFORM _fi_llvm_definitions REPLACE "^-D" "")

add_library(fi_llvm_headers INTERFACE)
target_include_directories(fi_llvm_headers SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# The layout of some of LLVM's classes depends on NDEBUG; the distribution's LLVM
# has it, so whoever includes its headers must.
target_compile_definitions(fi_llvm_headers INTERFACE ${_fi_llvm_definitions} NDEBUG)
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(fi_llvm_headers INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
endif()

# In a response file, so that a failing link prints its errors and not 400 names.
list(JOIN _fi_mlir_archives "\n" _fi_mlir_archives)
list(JOIN _fi_llvm_archives "\n" _fi_llvm_archives)
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/cmake/fi_llvm.rsp"
  CONTENT "${_fi_mlir_archives}\n${_fi_llvm_archives}\n" @ONLY)

add_library(fi_llvm INTERFACE)
target_link_libraries(fi_llvm INTERFACE fi_llvm_headers ${FI_LLD_STUBS} Threads::Threads ${CMAKE_DL_LIBS} z zstd m)
target_link_options(fi_llvm INTERFACE "@${CMAKE_BINARY_DIR}/cmake/fi_llvm.rsp"
  -Wl,--gc-sections -Wl,--as-needed)
# lld reads archives in any order, and 400 of them in a second or two; GNU ld takes
# minutes.
find_program(FI_LLD NAMES ld.lld ld.lld-22 HINTS "${LLVM_TOOLS_BINARY_DIR}")
if(FI_LLD)
  get_filename_component(_fi_lld_dir "${FI_LLD}" DIRECTORY)
  target_link_options(fi_llvm INTERFACE -B${_fi_lld_dir} -fuse-ld=lld)
  if(NOT FI_SANITIZE)
    target_link_options(fi_llvm INTERFACE -Wl,--icf=all)
  endif()
endif()
# Not position-independent: no relocation at start.
target_link_options(fi_llvm INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)

add_library(fi_llvm_dylib INTERFACE)
target_link_libraries(fi_llvm_dylib INTERFACE fi_llvm_headers MLIR LLVM)

add_library(fi_lld INTERFACE)
target_link_libraries(fi_lld INTERFACE "${LLVM_LIBRARY_DIR}/liblldELF.a" "${LLVM_LIBRARY_DIR}/liblldCommon.a")
