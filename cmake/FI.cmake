#===- FI.cmake - functions for fi's CMake files -----------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# fi_add_subdirectory(dir)
#   add_subdirectory, skipped while dir has no CMakeLists.txt.
#
# fi_add_tree()
#   Adds the nearest CMakeLists.txt on each path below the current directory: a new
#   component needs no entry in a list. lib/, tools/ and include/fi/ consist of it.
#
# add_fi_dialect(<dialect> DIALECT <td> [OPS <td>...] [TYPES <td>] [ATTRS <td>]
#                [ENUMS <td>...] [OP_INTERFACES <td>...] [TYPE_INTERFACES <td>...]
#                [ATTR_INTERFACES <td>...] [DOC <td>] [DEPENDS_ON_TD <td>...])
#   Runs mlir-tblgen for one dialect, called from the directory of the .td files
#   below include/. <dialect> is the mnemonic ("fi"). A file Foo.td becomes
#   Foo.h.inc and Foo.cpp.inc in the same place below the build's include/
#   (#include "fi/Dialect/FI/IR/FIOps.h.inc"). One .td in two roles needs two names
#   of output: write `FIAttrs.td:FIEnums` for FIEnums.{h,cpp}.inc from FIAttrs.td.
#   Included .td files are tracked by themselves. DOC (default: the last of OPS)
#   is the .td that includes the whole dialect; `ninja fi-doc` writes its page
#   to <build>/docs/generated/<dialect>-dialect.md.
#
# add_fi_interfaces([OP_INTERFACES <td>...] [TYPE_INTERFACES <td>...]
#                   [ATTR_INTERFACES <td>...] [ENUMS <td>...])
#   The same roles outside of a dialect. Interface pages go to generated/ as well.
#
# add_fi_passes(<td> NAME <Group> [DOC <page>])
#   Pass declarations: <stem>.h.inc with GEN_PASS_DECL, GEN_PASS_DEF_X and
#   GEN_PASS_REGISTRATION (registerX<Group>Passes); page: generated/<page>.md,
#   where <page> defaults to the stem in lower case.
#
# add_fi_rewrites(<td>)         <stem>.inc, -gen-rewriters
# add_fi_tables(<td>)           <stem>.inc, llvm-tblgen -gen-searchable-tables
# fi_tablegen(<out> <td> <args>...)   one run of mlir-tblgen, out relative to the
#   current binary directory; the functions above are written with it.
#
# add_fi_library(<Name> <source>... [LINK <target>...] [NO_PCH] [NO_LLVM] [INTERNAL])
#   A component of the compiler as a static library (lib/<Name>.a): include paths,
#   -fno-exceptions, the shared precompiled header, and a dependency on every
#   generated header. LINK names other components (and fi_lld, fi_runtime...); LLVM
#   and MLIR need not be named, tools link them. Sources that need exceptions or no
#   MLIR: NO_PCH; sources free of LLVM altogether: NO_LLVM (implies NO_PCH). It is
#   installed and exported as FI::<Name>, and with it what it links; INTERNAL: not.
#
# add_fi_tool(<name> <source>... [LINK <target>...] [NO_PCH] [NO_LLVM] [INTERNAL])
#   An executable in <build>/bin, linked statically against LLVM and MLIR. It is
#   added to `fi-tools`, and lit (check-fi) depends on it. It is installed, unless
#   it is INTERNAL.
#
# add_fi_unittest(<Name> <source>... [LINK <target>...] [SHARDS <n>] [NO_PCH] [NO_LLVM])
#   A GoogleTest binary in <build>/unittests, one ctest entry (with SHARDS that many,
#   which run side by side), with its results in
#   <build>/test-results/<Name>.json. Links gtest's main. In the runtime: NO_LLVM.
#
# Targets: fi-headers (all generated headers), fi-tools, fi-unittests, fi-doc
# (generated pages), check-fi (everything: ctest).
#
#===--------------------------------------------------------------------------===#

add_custom_target(fi-headers)
add_custom_target(fi-tools)
add_custom_target(fi-unittests)
add_custom_target(fi-doc)
set(FI_DOC_DIR "${PROJECT_BINARY_DIR}/docs/generated")
set(FI_TEST_RESULTS_DIR "${PROJECT_BINARY_DIR}/test-results")
file(MAKE_DIRECTORY "${FI_DOC_DIR}" "${FI_TEST_RESULTS_DIR}")

function(fi_add_subdirectory dir)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt")
    add_subdirectory(${dir})
  endif()
endfunction()

function(fi_add_tree)
  file(GLOB_RECURSE files RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS CMakeLists.txt)
  list(SORT files)
  set(added)
  foreach(file IN LISTS files)
    get_filename_component(dir "${file}" DIRECTORY)
    set(covered FALSE)
    foreach(other IN LISTS added)
      string(FIND "${dir}/" "${other}/" at)
      if(at EQUAL 0)
        set(covered TRUE)
      endif()
    endforeach()
    if(dir AND NOT covered)
      add_subdirectory(${dir})
      list(APPEND added ${dir})
    endif()
  endforeach()
endfunction()

# The include paths of fi's own headers.
add_library(fi_headers INTERFACE)
target_include_directories(fi_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include> $<INSTALL_INTERFACE:include>)

#===- TableGen ---------------------------------------------------------------===#

# One run of `tool` on `td` for the aggregate `target`; `out` is written only when
# its text changes, so that its users are not rebuilt.
function(_fi_run_tblgen tool target out td)
  set(out_path "${out}")
  if(NOT IS_ABSOLUTE "${out}")
    set(out_path "${CMAKE_CURRENT_BINARY_DIR}/${out}")
  endif()
  file(RELATIVE_PATH shown "${PROJECT_BINARY_DIR}" "${out_path}")
  set(includes -I "${PROJECT_SOURCE_DIR}/include" -I "${CMAKE_CURRENT_SOURCE_DIR}")
  foreach(dir IN LISTS MLIR_INCLUDE_DIRS LLVM_INCLUDE_DIRS)
    list(APPEND includes -I "${dir}")
  endforeach()
  add_custom_command(OUTPUT "${out_path}"
    COMMAND "${tool}" ${ARGN} ${includes} "${CMAKE_CURRENT_SOURCE_DIR}/${td}"
            --write-if-changed -o "${out_path}" -d "${out_path}.d"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${td}" "${tool}"
    DEPFILE "${out_path}.d"
    COMMENT "TableGen ${shown}"
    VERBATIM)
  string(MAKE_C_IDENTIFIER "${shown}" id)
  add_custom_target(tblgen-${id} DEPENDS "${out_path}")
  add_dependencies(${target} tblgen-${id})
endfunction()

function(fi_tablegen out td)
  _fi_run_tblgen("${FI_MLIR_TBLGEN}" fi-headers "${out}" "${td}" ${ARGN})
endfunction()

function(_fi_doc page td)
  _fi_run_tblgen("${FI_MLIR_TBLGEN}" fi-doc "${FI_DOC_DIR}/${page}.md" "${td}" ${ARGN})
endfunction()

# Splits `Foo.td:Bar` into td = Foo.td and stem = Bar; `Foo.td` gives stem = Foo.
macro(_fi_split_td entry)
  if("${entry}" MATCHES "^(.+\\.td):(.+)$")
    set(td "${CMAKE_MATCH_1}")
    set(stem "${CMAKE_MATCH_2}")
  else()
    set(td "${entry}")
    get_filename_component(stem "${td}" NAME_WE)
  endif()
endmacro()

# The declaration and the definition of each .td of one role.
function(_fi_decls_and_defs generator entries)
  foreach(entry IN LISTS entries)
    _fi_split_td("${entry}")
    fi_tablegen(${stem}.h.inc ${td} -gen-${generator}-decls ${ARGN})
    fi_tablegen(${stem}.cpp.inc ${td} -gen-${generator}-defs ${ARGN})
  endforeach()
endfunction()

function(_fi_interface_roles)
  cmake_parse_arguments(A "" "" "ENUMS;OP_INTERFACES;TYPE_INTERFACES;ATTR_INTERFACES" ${ARGN})
  _fi_decls_and_defs(enum "${A_ENUMS}")
  foreach(kind op type attr)
    string(TOUPPER ${kind} upper)
    _fi_decls_and_defs(${kind}-interface "${A_${upper}_INTERFACES}")
    foreach(entry IN LISTS A_${upper}_INTERFACES)
      _fi_split_td("${entry}")
      string(TOLOWER ${stem} page)
      _fi_doc(${page} ${td} -gen-${kind}-interface-docs)
    endforeach()
  endforeach()
endfunction()

function(add_fi_interfaces)
  _fi_interface_roles(${ARGN})
endfunction()

function(add_fi_dialect dialect)
  set(roles OPS TYPES ATTRS ENUMS OP_INTERFACES TYPE_INTERFACES ATTR_INTERFACES)
  cmake_parse_arguments(A "" "DIALECT;DOC" "${roles}" ${ARGN})
  if(NOT A_DIALECT OR A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "add_fi_dialect(${dialect}): expected DIALECT <td> and roles, but got '${ARGN}'")
  endif()
  _fi_decls_and_defs(dialect "${A_DIALECT}" -dialect=${dialect})
  _fi_decls_and_defs(op "${A_OPS}")
  _fi_decls_and_defs(typedef "${A_TYPES}" -typedefs-dialect=${dialect})
  _fi_decls_and_defs(attrdef "${A_ATTRS}" -attrdefs-dialect=${dialect})
  _fi_interface_roles(ENUMS ${A_ENUMS} OP_INTERFACES ${A_OP_INTERFACES}
    TYPE_INTERFACES ${A_TYPE_INTERFACES} ATTR_INTERFACES ${A_ATTR_INTERFACES})
  if(NOT A_DOC AND A_OPS)
    list(GET A_OPS -1 A_DOC)
  endif()
  if(A_DOC)
    _fi_split_td("${A_DOC}")
    _fi_doc(${dialect}-dialect ${td} -gen-dialect-doc -dialect=${dialect})
  endif()
endfunction()

function(add_fi_passes td)
  cmake_parse_arguments(A "" "NAME;DOC" "" ${ARGN})
  get_filename_component(stem "${td}" NAME_WE)
  fi_tablegen(${stem}.h.inc ${td} -gen-pass-decls -name=${A_NAME})
  if(NOT A_DOC)
    string(TOLOWER "${stem}" A_DOC)
  endif()
  _fi_doc(${A_DOC} ${td} -gen-pass-doc)
endfunction()

function(add_fi_rewrites td)
  get_filename_component(stem "${td}" NAME_WE)
  fi_tablegen(${stem}.inc ${td} -gen-rewriters)
endfunction()

function(add_fi_tables td)
  get_filename_component(stem "${td}" NAME_WE)
  _fi_run_tblgen("${FI_LLVM_TBLGEN}" fi-headers ${stem}.inc ${td} -gen-searchable-tables)
endfunction()

#===- Libraries, tools, tests ------------------------------------------------===#

if(FI_BUILD_COMPILER AND FI_ENABLE_PCH)
  file(WRITE "${PROJECT_BINARY_DIR}/cmake/fi_pch.cpp.in" "// The source that carries the shared precompiled header.\n")
  configure_file("${PROJECT_BINARY_DIR}/cmake/fi_pch.cpp.in" "${PROJECT_BINARY_DIR}/cmake/fi_pch.cpp" COPYONLY)
  add_library(fi_pch STATIC "${PROJECT_BINARY_DIR}/cmake/fi_pch.cpp")
  target_link_libraries(fi_pch PRIVATE fi_llvm_headers)
  target_precompile_headers(fi_pch PRIVATE "${PROJECT_SOURCE_DIR}/cmake/fi_pch.h")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(fi_pch PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# What a library, a tool and a unit test of fi have in common.
function(_fi_setup target)
  cmake_parse_arguments(A "NO_PCH;NO_LLVM" "" "LINK" ${ARGN})
  if(NOT A_NO_LLVM)
    list(APPEND A_LINK fi_llvm_headers)
  endif()
  # These are not exported but made anew where fi is installed (FIConfig.cmake).
  foreach(made fi_llvm_headers fi_lld)
    if(made IN_LIST A_LINK)
      list(REMOVE_ITEM A_LINK ${made})
      list(APPEND A_LINK $<BUILD_INTERFACE:${made}> $<INSTALL_INTERFACE:FI::${made}>)
    endif()
  endforeach()
  target_link_libraries(${target} PUBLIC fi_headers ${A_LINK})
  if(NOT A_NO_LLVM)
    add_dependencies(${target} fi-headers)
    if(TARGET fi_pch AND NOT A_NO_PCH)
      target_precompile_headers(${target} REUSE_FROM fi_pch)
      # The header was compiled so; an executable would get -fPIE.
      target_compile_options(${target} PRIVATE -fPIC)
      if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
      endif()
    endif()
  endif()
endfunction()

# Sets `sources` and `options` in the caller from a mixed list.
macro(_fi_split_arguments)
  cmake_parse_arguments(S "NO_PCH;NO_LLVM;INTERNAL" "SHARDS" "LINK" ${ARGN})
  set(sources ${S_UNPARSED_ARGUMENTS})
  set(options LINK ${S_LINK})
  foreach(flag NO_PCH NO_LLVM)
    if(S_${flag})
      list(APPEND options ${flag})
    endif()
  endforeach()
endmacro()

function(add_fi_library name)
  _fi_split_arguments(${ARGN})
  add_library(${name} STATIC ${sources})
  _fi_setup(${name} ${options})
  if(NOT S_INTERNAL)
    install(TARGETS ${name} EXPORT FICompilerTargets ARCHIVE DESTINATION lib)
  endif()
endfunction()

function(add_fi_tool name)
  _fi_split_arguments(${ARGN})
  add_executable(${name} ${sources})
  _fi_setup(${name} ${options})
  if(NOT S_NO_LLVM)
    target_link_libraries(${name} PRIVATE fi_llvm)
  endif()
  if(NOT S_INTERNAL)
    install(TARGETS ${name} RUNTIME DESTINATION bin)
  endif()
  add_dependencies(fi-tools ${name})
endfunction()

function(add_fi_unittest name)
  if(NOT FI_BUILD_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  _fi_split_arguments(${ARGN})
  add_executable(${name} ${sources})
  _fi_setup(${name} ${options})
  target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest GTest::gtest_main)
  if(NOT S_NO_LLVM)
    target_link_libraries(${name} PRIVATE fi_llvm)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/unittests")
  add_dependencies(fi-unittests ${name})
  # Tests neither read nor leave anything in the user's cache.
  set(environment "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test/cache")
  if(FI_SANITIZE)
    # LLVM's archives are not instrumented, so its containers carry no annotations.
    list(APPEND environment "ASAN_OPTIONS=detect_container_overflow=0")
  endif()
  if(NOT S_SHARDS)
    add_test(NAME unit.${name}
      COMMAND ${name} --gtest_brief=1 "--gtest_output=json:${FI_TEST_RESULTS_DIR}/${name}.json")
    set_tests_properties(unit.${name} PROPERTIES ENVIRONMENT "${environment}")
    return()
  endif()
  # A long suite in parts, which run side by side, and begin before others.
  math(EXPR last "${S_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME unit.${name}.${shard}
      COMMAND ${name} --gtest_brief=1 "--gtest_output=json:${FI_TEST_RESULTS_DIR}/${name}.${shard}.json")
    set_tests_properties(unit.${name}.${shard} PROPERTIES COST 100
      ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${S_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
