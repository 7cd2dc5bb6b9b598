//===- Serve.cpp - a row for another program to measure with --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"
#include "fi/Support/Npy.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>

using namespace llvm;

namespace fi::bench {
namespace {

Error runTimes(const Case &made, StringRef count) {
  int64_t runs;
  if (count.getAsInteger(10, runs) || runs < 1 || runs > 1000000)
    return createStringError(inconvertibleErrorCode(),
                             "run: expected a number in 1 ... 1000000, but got "
                             "'" +
                                 count + "'");
  json::Array times;
  for (int64_t i = 0; i < runs; ++i) {
    Expected<Timed> timed = made.contenders[0].run();
    if (!timed)
      return timed.takeError();
    times.push_back(timed->seconds * 1e3);
  }
  outs() << json::Value(std::move(times)) << "\n";
  return Error::success();
}

Error save(const Kernel &kernel, StringRef directory) {
  std::vector<std::pair<StringRef, HostTensor>> tensors = {
      {"q", kernel.getQuery()},
      {"k", kernel.getKeys()},
      {"v", kernel.getValues()},
      {"o", kernel.getOutput()}};
  const Problem &p = kernel.getProblem();
  if (p.paged)
    tensors.push_back({"pages", kernel.getPages()});
  for (auto [name, tensor] : tensors)
    if (Error error = writeNpy((directory + "/" + name + ".npy").str(), tensor))
      return error;
  outs() << json::Value(
                json::Object{{"dtype", fi::getName(p.type)},
                             {"paged", p.paged},
                             {"order", stringifyHeadOrder(p.order)},
                             {"page", p.page},
                             {"query_heads", p.queryHeads},
                             {"kv_heads", p.kvHeads},
                             {"dim", p.dim},
                             {"requests", p.requests},
                             {"rows", p.rows},
                             {"keys", p.keys},
                             {"causal", p.mask != Mask::Full},
                             {"window", p.mask == Mask::Window ? p.window : 0},
                             {"workers", p.workers},
                             {"operations", p.getOperations()},
                             {"kv_bytes", p.getKVBytes()}})
         << "\n";
  return Error::success();
}

} // namespace

Error serve(const Row &row) {
  Expected<Case> made = row.make();
  if (!made)
    return made.takeError();
  if (!made->kernel)
    return createStringError(inconvertibleErrorCode(),
                             row.name +
                                 ": only rows of attention can be served");
  outs() << "ready\n";
  outs().flush();
  std::string line;
  while (std::getline(std::cin, line)) {
    auto [command, argument] = StringRef(line).trim().split(' ');
    if (command == "quit")
      break;
    Error error = command == "run" ? runTimes(*made, argument.trim())
                  : command == "save"
                      ? save(*made->kernel, argument.trim())
                      : createStringError(inconvertibleErrorCode(),
                                          "expected run N, save DIR or quit, "
                                          "but got '" +
                                              line + "'");
    if (error)
      return error;
    outs().flush();
  }
  return Error::success();
}

} // namespace fi::bench
