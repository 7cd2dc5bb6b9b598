#===- FILLDStubs.cmake - what lld refers to and fi does not link ------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# lld refers to every target that LLVM was built with and to Polly, for link-time
# optimisation of bitcode. Linking objects needs neither, and all targets would add
# 100 MB to a tool, so what fi does not link is defined as doing nothing.
#
#===--------------------------------------------------------------------------===#
set(_fi_lld_stubs
"// What lld refers to and fi does not link; see cmake/FILLDStubs.cmake.
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
target_link_libraries(fi_lld_stubs PRIVATE $<BUILD_INTERFACE:fi_llvm_headers>)
