#===- FIBuildId.cmake - a hash of the compiler's sources --------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   cmake -DOUT=<file.cpp> -DLIST=<file with one source a line> -P FIBuildId.cmake
#
# Code in the cache is that of one compiler. Its version alone would let a cache
# outlive a change of the compiler in development, so the sources are hashed; the
# hash is the same in every tool and does not depend on where the tree lies.
#
#===--------------------------------------------------------------------------===#
file(STRINGS "${LIST}" sources)
set(sums "")
foreach(source IN LISTS sources)
  file(SHA256 "${source}" sum)
  string(APPEND sums "${sum}\n")
endforeach()
string(SHA256 id "${sums}")
set(text "// Written by cmake/FIBuildId.cmake.
namespace fi {
const char *getBuildId();
const char *getBuildId() { return \"${id}\"; }
} // namespace fi
")
file(WRITE "${OUT}" "${text}")
