//===- Compile.cpp - the compiler for callers with exceptions -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Target/SMTable.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace fi::python {
namespace {

/// A context, the module parsed in it, and what was said.
class Session {
public:
  explicit Session(const Request &request)
      : request(request), context(makeContext()) {}

  Error parse() {
    if (Error error = checkNesting(request.text, "text"))
      return error;
    // Nothing is printed: what is said becomes part of the error.
    manager.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(request.text, "text"),
        llvm::SMLoc());
    handler = std::make_unique<mlir::SourceMgrDiagnosticHandler>(
        manager, context.get(), said);
    module = mlir::parseSourceString<mlir::ModuleOp>(request.text,
                                                     context.get(), "text");
    if (!module)
      return createStringError("compile: the text is not a valid program");
    Expected<TargetAttr> target = getTarget();
    if (!target)
      return target.takeError();
    if (*target)
      (*module)->setAttr(kTargetAttr, *target);
    if (request.checked)
      (*module)->setAttr(kCheckedAttr, mlir::UnitAttr::get(context.get()));
    if (!request.profile.empty() && request.profile != "phases" &&
        request.profile != "tiles")
      return createStringError("compile: profile: expected None, 'phases' or "
                               "'tiles', but got '" +
                               request.profile + "'");
    if (!request.profile.empty())
      (*module)->setAttr(kProfileAttr,
                         mlir::StringAttr::get(context.get(), request.profile));
    return Error::success();
  }

  bool isForGPU() {
    auto target = (*module)->getAttrOfType<TargetAttr>(kTargetAttr);
    return target && target.getChip();
  }

  Expected<gpu::CompiledPackage> compileForGPU(gpu::CompileOptions options) {
    options.cache.enabled = request.cache && !options.observe;
    return gpu::compileForGPU(*module, request.program, options);
  }

  Expected<std::unique_ptr<cpu::CompiledProgram>>
  compileForCPU(cpu::CompileOptions options) {
    options.cache.enabled = request.cache && !options.observe;
    return cpu::CompiledProgram::compile(*module, request.program, options);
  }

  /// The sentence of an error; diagnostics follow it, unless it repeats them.
  std::string describe(Error error) {
    std::string sentence = llvm::toString(std::move(error));
    StringRef rest = StringRef(diagnostics).trim();
    if (!rest.empty())
      sentence += "\n" + rest.str();
    return sentence;
  }

private:
  static std::unique_ptr<mlir::MLIRContext> makeContext() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    cpu::registerCompiler(registry);
    gpu::registerCompiler(registry);
    auto context = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    context->loadDialect<FIDialect>();
    return context;
  }

  Expected<const sm::Target *> findDevice() {
    return sm::findNative(
        [&]() -> std::optional<std::pair<unsigned, unsigned>> {
          if (!request.major)
            return std::nullopt;
          return std::make_pair(request.major, request.minor);
        });
  }

  /// The target asked for; null: the module's.
  Expected<TargetAttr> getTarget() {
    StringRef text = request.target;
    if (text.empty() && (*module)->hasAttr(kTargetAttr))
      return TargetAttr();
    bool isNative = text.empty() || text == "native";
    if (text == "cuda" || (isNative && request.major)) {
      auto chip = findDevice();
      if (!chip)
        return chip.takeError();
      return TargetAttr::get(context.get(), **chip);
    }
    if (isNative || text == "cpu")
      return cpu::getHostTarget(context.get());
    if (text.starts_with("#fi.target")) {
      if (auto attr = llvm::dyn_cast_or_null<TargetAttr>(
              mlir::parseAttribute(text, context.get())))
        return attr;
      return createStringError("compile: target: '" + text +
                               "' is not a target");
    }
    if (const sm::Target *chip = sm::lookup(text))
      return TargetAttr::get(context.get(), *chip);
    return createStringError("compile: target: expected native, cpu, cuda, "
                             "#fi.target<...> or one of " +
                             sm::getNames() + ", but got '" + text + "'" +
                             sm::getHint(text));
  }

  const Request &request;
  std::unique_ptr<mlir::MLIRContext> context;
  llvm::SourceMgr manager;
  std::string diagnostics;
  llvm::raw_string_ostream said{diagnostics};
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace

std::string compile(const Request &request, Code &code) {
  Session session(request);
  if (Error error = session.parse())
    return session.describe(std::move(error));
  if (session.isForGPU()) {
    auto package = session.compileForGPU({});
    if (!package)
      return session.describe(package.takeError());
    if (package->manifest.empty())
      return session.describe(createStringError(
          "compile: expected an fi.program in the text, but got none"));
    code.isCuda = true;
    code.manifest = std::move(package->manifest);
    code.ptx = std::move(package->ptx);
    code.cubin = std::move(package->cubin);
    return "";
  }
  auto program = session.compileForCPU({});
  if (!program)
    return session.describe(program.takeError());
  std::shared_ptr<cpu::CompiledProgram> owner = std::move(*program);
  code.manifest = owner->getManifest().str();
  code.lookup =
      reinterpret_cast<uintptr_t>(&cpu::CompiledProgram::lookupCallback);
  code.context = reinterpret_cast<uintptr_t>(owner.get());
  code.owner = std::move(owner);
  return "";
}

std::string print(const Request &request, const std::string &level,
                  std::string &text) {
  Session session(request);
  if (Error error = session.parse())
    return session.describe(std::move(error));
  auto observe = [&](StringRef stage, mlir::ModuleOp module) {
    if (stage != level)
      return;
    text.clear();
    llvm::raw_string_ostream os(text);
    module.print(os);
    os << "\n";
  };
  if (session.isForGPU()) {
    gpu::CompileOptions options;
    options.assemble = false;
    options.observe = observe;
    auto package = session.compileForGPU(options);
    if (!package)
      return session.describe(package.takeError());
    return "";
  }
  cpu::CompileOptions options;
  options.observe = observe;
  auto program = session.compileForCPU(options);
  if (!program)
    return session.describe(program.takeError());
  return "";
}

} // namespace fi::python
