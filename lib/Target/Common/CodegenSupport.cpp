//===- CodegenSupport.cpp - what code generators have in common -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/CodegenSupport.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include <chrono>
#include <mutex>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define FI_HAS_LEAK_CHECKS
#endif
#endif

using namespace mlir;
using namespace fi;

double fi::now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch())
      .count();
}

//===----------------------------------------------------------------------===//
// Fatal errors
//===----------------------------------------------------------------------===//

/// Where the thread wants to have the reason; null outside of runSafely.
static thread_local std::string *fatalReason = nullptr;

/// LLVM calls this before it ends the process, and does so if this returns.
static void onFatalError(void *, const char *reason, bool) {
  auto *recovery = llvm::CrashRecoveryContext::GetCurrent();
  if (!fatalReason || !recovery) {
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return;
  }
  *fatalReason = StringRef(reason).take_until([](char c) { return c == '\n'; });
  recovery->HandleExit(1);
}

namespace {

/// The handler is one of the process, and is there while some thread needs it.
class FatalErrorScope {
public:
  explicit FatalErrorScope(std::string &reason) : outer(fatalReason) {
    fatalReason = &reason;
    std::lock_guard<std::mutex> lock(mutex);
    if (users++ == 0) {
      llvm::CrashRecoveryContext::Enable();
      llvm::install_fatal_error_handler(onFatalError);
    }
  }
  ~FatalErrorScope() {
    fatalReason = outer;
    std::lock_guard<std::mutex> lock(mutex);
    if (--users == 0)
      llvm::remove_fatal_error_handler();
  }

private:
  static std::mutex mutex;
  static unsigned users;
  std::string *outer;
};

std::mutex FatalErrorScope::mutex;
unsigned FatalErrorScope::users = 0;

} // namespace

namespace {
#ifdef FI_HAS_LEAK_CHECKS
/// What LLVM has when it gives up is lost, whoever looks for leaks.
using LossScope = __lsan::ScopedDisabler;
#else
struct LossScope {
  ~LossScope() {}
};
#endif
} // namespace

llvm::Error fi::runSafely(StringRef what,
                          llvm::function_ref<llvm::Error()> function) {
  // Not in the closure: it is left by a jump if LLVM gives up.
  std::optional<llvm::Error> error;
  std::string reason;
  FatalErrorScope scope(reason);
  LossScope loss;
  llvm::CrashRecoveryContext recovery;
  if (recovery.RunSafely([&] { error.emplace(function()); }))
    return std::move(*error);
  if (reason.empty())
    return llvm::createStringError(what);
  return llvm::createStringError(what + ": " + reason);
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

LastError::LastError(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          text.clear();
          llvm::raw_string_ostream os(text);
          os << diagnostic.getLocation() << ": " << diagnostic.str();
        }
        return failure();
      }) {}

llvm::Error LastError::take() {
  return llvm::createStringError(text.empty() ? "lowering failed" : text);
}

llvm::Error fi::makeError(Operation *op, const llvm::Twine &text) {
  LastError errors(op->getContext());
  // Not the op's own: that would print a whole kernel below it.
  emitError(op->getLoc()) << text;
  return errors.take();
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

PassManagers::PassManagers() = default;
PassManagers::~PassManagers() = default;

std::unique_ptr<PassManager> PassManagers::take(StringRef passes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = unused.find(passes);
  if (found == unused.end() || found->second.empty())
    return nullptr;
  auto manager = std::move(found->second.back());
  found->second.pop_back();
  return manager;
}

void PassManagers::giveBack(StringRef passes,
                            std::unique_ptr<PassManager> manager) {
  std::lock_guard<std::mutex> lock(mutex);
  unused[passes].push_back(std::move(manager));
}

llvm::Error fi::runPasses(ModuleOp module,
                          llvm::function_ref<void(OpPassManager &)> build,
                          bool verifyEach, PassManagers *managers) {
  LastError errors(module.getContext());
  auto pm = std::make_unique<PassManager>(module.getContext(),
                                          ModuleOp::getOperationName());
  build(*pm);
#ifndef FI_ENABLE_ASSERTS
  // After each pass is for those who write passes: it takes a fifth of the
  // time.
  verifyEach = false;
#endif
  // The passes with their options name a manager: making them is cheap, and
  // their patterns are made when they first run.
  std::string passes;
  if (managers) {
    llvm::raw_string_ostream os(passes);
    os << verifyEach << ' ';
    pm->printAsTextualPipeline(os);
    if (auto known = managers->take(passes))
      pm = std::move(known);
  }
  pm->enableVerifier(verifyEach);
  if (failed(pm->run(module)) || failed(verify(module)))
    return errors.take();
  if (managers)
    managers->giveBack(passes, std::move(pm));
  return llvm::Error::success();
}
