//===- Trace.h - traces of serving requests ---------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads what was asked of a server: when a request came, how long its prompt
// was and how many tokens were generated. The format is CSV with a header line,
// as the public Azure LLM inference traces have it.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_TRACE_H
#define FI_REPLAY_TRACE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace fi::replay {

/// One request of a trace.
struct TraceRequest {
  /// Seconds after the first request of the trace.
  double arrival = 0;
  int64_t promptTokens = 0;
  int64_t generatedTokens = 0;

  /// Tokens whose keys and values are computed. The last generated token is
  /// sent away and never enters the model again.
  int64_t getComputedTokens() const {
    return promptTokens + (generatedTokens > 0 ? generatedTokens - 1 : 0);
  }
};

/// Largest length of a prompt or an answer that is taken for real.
inline constexpr int64_t kMaxTraceTokens = 1 << 24;

/// Parses CSV text with the columns TIMESTAMP, ContextTokens and
/// GeneratedTokens in any order; other columns are ignored. Time stamps are
/// `2023-11-16 18:15:46.6805900` or plain seconds, and must not fall. `name` is
/// for messages.
llvm::Expected<std::vector<TraceRequest>> parseTrace(llvm::StringRef text,
                                                     llvm::StringRef name);

/// parseTrace on a file.
llvm::Expected<std::vector<TraceRequest>> readTrace(llvm::StringRef path);

} // namespace fi::replay

#endif // FI_REPLAY_TRACE_H
