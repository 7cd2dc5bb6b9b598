//===- Assert.h - FI_ASSERT: an internal check of test builds -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every build type defines NDEBUG, because the layout of LLVM's classes depends
// on it, so `assert` is dead. FI_ASSERT(condition, "what is broken") checks
// where the build option FI_ENABLE_ASSERTS is on and is not evaluated where it
// is off. It guards against bugs of fi; what a user can cause is reported as an
// error. Needs neither LLVM nor the C++ library: the runtime uses it as well.
//
//===----------------------------------------------------------------------===//
#ifndef FI_SUPPORT_ASSERT_H
#define FI_SUPPORT_ASSERT_H

#ifdef FI_ENABLE_ASSERTS
#include <stdio.h>
#include <stdlib.h>
#define FI_ASSERT(condition, message)                                          \
  ((condition) ? (void)0                                                       \
               : (fprintf(stderr, "%s:%d: internal error: %s (expected %s)\n", \
                          __FILE__, __LINE__, message, #condition),            \
                  abort()))
#else
/* In sizeof the condition is not evaluated, but its variables count as used. */
#define FI_ASSERT(condition, message) ((void)sizeof(!(condition)))
#endif

#endif // FI_SUPPORT_ASSERT_H
