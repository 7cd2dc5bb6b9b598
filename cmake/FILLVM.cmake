#===- FILLVM.cmake - LLVM and MLIR, linked statically -----------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# Finds LLVM and MLIR 22.1 and defines
#
#   fi_llvm_headers   interface: include directories, definitions, -fno-exceptions
#   fi_llvm           interface: fi_llvm_headers and the component archives that a
#                     tool may use, with the flags that drop what it does not use
#   fi_lld            interface: liblld's ELF driver, to link shared objects in process
#
# The shared libMLIR costs 30 to 60 ms of relocation at each start of a tool; the
# archives cost none. They are named by path, not as imported targets, because lld
# finds symbols in any order of archives and reads only the indices of those that it
# does not use: no dependency list has to be kept in step with the dialects used.
#
#===--------------------------------------------------------------------------===#
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
message(STATUS "fi: MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")

find_program(FI_MLIR_TBLGEN mlir-tblgen HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED NO_DEFAULT_PATH)
find_program(FI_LLVM_TBLGEN llvm-tblgen HINTS "${LLVM_TOOLS_BINARY_DIR}" REQUIRED NO_DEFAULT_PATH)

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
target_compile_definitions(fi_llvm_headers INTERFACE ${_fi_llvm_definitions})
target_compile_options(fi_llvm_headers INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-Wno-unused-parameter>)
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(fi_llvm_headers INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
endif()

# In a response file, so that a failing link prints its errors and not 400 names.
list(JOIN _fi_mlir_archives "\n" _fi_mlir_archives)
list(JOIN _fi_llvm_archives "\n" _fi_llvm_archives)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/cmake/fi_llvm.rsp"
  CONTENT "${_fi_mlir_archives}\n${_fi_llvm_archives}\n" @ONLY)

add_library(fi_llvm INTERFACE)
target_link_libraries(fi_llvm INTERFACE fi_llvm_headers Threads::Threads ${CMAKE_DL_LIBS} z zstd m)
target_link_options(fi_llvm INTERFACE "@${PROJECT_BINARY_DIR}/cmake/fi_llvm.rsp")
# Not position-independent: no relocation at start.
target_link_options(fi_llvm INTERFACE -Wl,--gc-sections -Wl,--as-needed -no-pie)
if(NOT FI_SANITIZE)
  target_link_options(fi_llvm INTERFACE -Wl,--icf=all)
endif()

# lld refers to every target that LLVM was built with and to Polly, for link-time
# optimisation of bitcode. Linking objects needs neither, and all targets would add
# 100 MB to a tool, so what fi does not link is defined as doing nothing.
set(_fi_lld_stubs
"// What lld refers to and fi does not link; see cmake/FILLVM.cmake.
#include \"llvm/Plugins/PassPlugin.h\"

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, \"none\", \"\", [](llvm::PassBuilder &) {}, nullptr};
}

extern \"C\" {
")
foreach(llvm_target IN LISTS LLVM_TARGETS_TO_BUILD)
  if(NOT llvm_target MATCHES "^(X86|NVPTX)$")
    foreach(part Target TargetInfo TargetMC AsmPrinter AsmParser)
      string(APPEND _fi_lld_stubs "void LLVMInitialize${llvm_target}${part}() {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/cmake/fi_lld_stubs.cpp" CONTENT "${_fi_lld_stubs}}\n" @ONLY)
add_library(fi_lld_stubs STATIC "${PROJECT_BINARY_DIR}/cmake/fi_lld_stubs.cpp")
target_link_libraries(fi_lld_stubs PRIVATE fi_llvm_headers)

add_library(fi_lld INTERFACE)
target_link_libraries(fi_lld INTERFACE
  ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a fi_lld_stubs fi_llvm)
