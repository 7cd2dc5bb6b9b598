#===- FICompileOptions.cmake - flags of every target ------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# Language level, warnings, sanitizers, linker and compiler cache. Nothing here
# knows of LLVM: the runtime is built with these flags alone.
#
#===--------------------------------------------------------------------------===#
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# "Dev": what compiles fastest and still gives file and line in a backtrace. The
# front end dominates the time of an MLIR file, so -O1 costs next to nothing.
set(CMAKE_C_FLAGS_DEV "-O1 -gline-tables-only" CACHE STRING "")
set(CMAKE_CXX_FLAGS_DEV "-O1 -gline-tables-only" CACHE STRING "")
set(CMAKE_C_FLAGS_RELEASE "-O2" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O2" CACHE STRING "" FORCE)

# The distribution's LLVM is built with NDEBUG, and the layout of some of its
# classes depends on it (Pass::Statistic has 1 byte with and 40 without), so every
# build type defines it. FI_ASSERT (include/fi/Support/Assert.h) takes assert's place.
add_compile_definitions(NDEBUG)
if(FI_ENABLE_ASSERTS)
  add_compile_definitions(FI_ENABLE_ASSERTS=1)
endif()

add_compile_options(-Wall -Wextra)
if(FI_ENABLE_WERROR)
  add_compile_options(-Werror)
endif()
# So that the linker can drop what a tool does not use.
add_compile_options(-ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-fcolor-diagnostics)
endif()

if(FI_SANITIZE)
  # vptr and function would need type information of LLVM's uninstrumented code.
  add_compile_options(-fsanitize=${FI_SANITIZE} -fno-sanitize=vptr,function
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FI_SANITIZE} -fno-sanitize=vptr,function)
endif()

# lld links a tool against 400 archives in a second or two; GNU ld takes minutes.
find_program(FI_LLD NAMES ld.lld HINTS /usr/lib/llvm-22/bin NAMES ld.lld-22)
if(FI_LLD)
  get_filename_component(_fi_lld_dir "${FI_LLD}" DIRECTORY)
  add_link_options(-B${_fi_lld_dir} -fuse-ld=lld)
endif()

if(FI_ENABLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(FI_CCACHE ccache)
  if(FI_CCACHE)
    # With a precompiled header ccache needs to be told that its time stamp and
    # the macros of time do not matter; clang must leave the stamp out (below).
    set(_fi_launcher "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};${FI_CCACHE}")
    set(CMAKE_C_COMPILER_LAUNCHER "${_fi_launcher}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${_fi_launcher}")
  endif()
endif()

find_package(Threads REQUIRED)
