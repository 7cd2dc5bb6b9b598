//===- SharedObject.cpp - links objects in process ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// lld needs a library to link against, and the machine that compiles need not
// have the development files. So the few functions that kernels use of libc and
// libm are declared by stubs, made on the spot. Their symbols have no versions:
// the object loads with any glibc.
//
//===----------------------------------------------------------------------===//

#include "SharedObject.h"
#include "fi/ABI/KernelABI.h"
#include "fi/Support/File.h"
#include "fi/Target/PackageFiles.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/InterfaceStub/ELFObjHandler.h"
#include "llvm/InterfaceStub/IFSStub.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace fi;
using namespace fi::cpu;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallString;
using llvm::StringRef;
using llvm::Twine;

// What LLVM may make of memory operations.
static constexpr llvm::StringLiteral kLibc[] = {"bcmp", "memcmp", "memcpy",
                                                "memmove", "memset"};

/// What the math dialect has, in f64; an `f` behind it is the f32 function.
static bool isInLibm(StringRef name) {
  static const llvm::StringSet<> functions = {
      "acos",  "acosh", "asin",      "asinh", "atan",  "atan2", "atanh",
      "cbrt",  "ceil",  "copysign",  "cos",   "cosh",  "erf",   "erfc",
      "exp",   "exp10", "exp2",      "expm1", "fabs",  "floor", "fma",
      "fmax",  "fmin",  "fmod",      "frexp", "ldexp", "log",   "log10",
      "log1p", "log2",  "nearbyint", "pow",   "rint",  "round", "roundeven",
      "sin",   "sinh",  "sqrt",      "tan",   "tanh",  "trunc"};
  return functions.contains(name) ||
         (name.consume_back("f") && functions.contains(name));
}

Expected<std::vector<std::string>>
fi::cpu::findUndefined(llvm::ArrayRef<ObjectCode> objects) {
  llvm::StringSet<> defined, used;
  for (const ObjectCode &code : objects) {
    auto object = llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef(StringRef(code.data(), code.size()), "kernel.o"));
    if (!object)
      return object.takeError();
    for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
      auto flags = symbol.getFlags();
      if (!flags)
        return flags.takeError();
      auto name = symbol.getName();
      if (!name)
        return name.takeError();
      if (name->empty() || *name == "_GLOBAL_OFFSET_TABLE_")
        continue;
      bool isUndefined = *flags & llvm::object::SymbolRef::SF_Undefined;
      (isUndefined ? used : defined).insert(*name);
    }
  }
  std::vector<std::string> result;
  for (const auto &entry : used)
    if (!defined.contains(entry.getKey()))
      result.push_back(entry.getKey().str());
  llvm::sort(result);
  return result;
}

static Error writeStub(StringRef path, StringRef soName,
                       llvm::ArrayRef<std::string> functions) {
  llvm::ifs::IFSStub stub;
  stub.IfsVersion = llvm::VersionTuple(3, 0);
  stub.SoName = soName.str();
  stub.Target.Arch = llvm::ELF::EM_X86_64;
  stub.Target.Endianness = llvm::ifs::IFSEndiannessType::Little;
  stub.Target.BitWidth = llvm::ifs::IFSBitWidthType::IFS64;
  for (const std::string &name : functions) {
    llvm::ifs::IFSSymbol symbol(name);
    symbol.Type = llvm::ifs::IFSSymbolType::Func;
    stub.Symbols.push_back(std::move(symbol));
  }
  return llvm::ifs::writeBinaryStub(path, stub);
}

namespace {

/// lld sets all of LLVM's command-line options back to their defaults, and
/// those of the tool that it is linked into with them. While this lives, there
/// are no options to be found.
class HiddenOptions {
public:
  HiddenOptions() {
    for (llvm::cl::SubCommand *command : llvm::cl::getRegisteredSubcommands())
      hide(*command);
  }
  ~HiddenOptions() {
    for (Saved &one : saved) {
      std::swap(one.command->PositionalOpts, one.positional);
      std::swap(one.command->SinkOpts, one.sinks);
      std::swap(one.command->OptionsMap, one.options);
      std::swap(one.command->ConsumeAfterOpt, one.consumeAfter);
    }
  }

private:
  struct Saved {
    llvm::cl::SubCommand *command;
    decltype(llvm::cl::SubCommand::PositionalOpts) positional;
    decltype(llvm::cl::SubCommand::SinkOpts) sinks;
    decltype(llvm::cl::SubCommand::OptionsMap) options;
    llvm::cl::Option *consumeAfter;
  };

  void hide(llvm::cl::SubCommand &command) {
    saved.push_back({&command, std::move(command.PositionalOpts),
                     std::move(command.SinkOpts), std::move(command.OptionsMap),
                     command.ConsumeAfterOpt});
    command.PositionalOpts.clear();
    command.SinkOpts.clear();
    command.OptionsMap.clear();
    command.ConsumeAfterOpt = nullptr;
  }

  std::vector<Saved> saved;
};

} // namespace

/// lld has one state for the process.
static Error runLinker(llvm::ArrayRef<std::string> arguments) {
  static std::mutex mutex;
  static bool isBroken = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (isBroken)
    return createStringError("the linker crashed earlier in this process");
  std::vector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream os(messages);
  HiddenOptions hidden;
  lld::Result result =
      lld::lldMain(argv, os, os, {{lld::Gnu, &lld::elf::link}});
  isBroken = !result.canRunAgain;
  if (result.retCode == 0)
    return Error::success();
  llvm::SmallVector<StringRef> lines;
  StringRef(messages).split(lines, '\n', 1);
  return createStringError("linking failed: " +
                           (lines.empty() ? StringRef() : lines[0].trim()));
}

Error fi::cpu::linkSharedObject(llvm::ArrayRef<ObjectCode> objects,
                                StringRef path) {
  auto undefined = findUndefined(objects);
  if (!undefined)
    return undefined.takeError();
  std::vector<std::string> libc, libm;
  for (const std::string &name : *undefined) {
    if (llvm::is_contained(kLibc, name))
      libc.push_back(name);
    else if (isInLibm(name))
      libm.push_back(name);
    else
      return createStringError("a kernel calls '" + name +
                               "', but a package may use libc's memory "
                               "functions and libm only");
  }
  // gnu hash and section headers stay: loaders and tools want them.
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-o",
                                        path.str(),
                                        "-s",
                                        "-z",
                                        "defs",
                                        "-z",
                                        "noexecstack",
                                        "--hash-style=gnu",
                                        "--build-id=none",
                                        "-z",
                                        "now",
                                        "--threads=1",
                                        "--no-mmap-output-file"};
  std::vector<std::string> temporaries;
  auto temporary = [&](StringRef suffix) {
    temporaries.push_back((path + suffix).str());
    return temporaries.back();
  };
  Error error = [&]() -> Error {
    for (size_t i = 0; i < objects.size(); ++i) {
      std::string file = temporary("." + std::to_string(i) + ".o");
      if (Error failed = writeFile(file, [&](llvm::raw_ostream &os) {
            os.write(objects[i].data(), objects[i].size());
          }))
        return failed;
      arguments.push_back(file);
    }
    const std::pair<StringRef, std::vector<std::string> *> libraries[] = {
        {"libm.so.6", &libm}, {"libc.so.6", &libc}};
    for (auto [soName, functions] : libraries) {
      if (functions->empty())
        continue;
      std::string file = temporary(("." + soName).str());
      if (Error failed = writeStub(file, soName, *functions))
        return failed;
      arguments.push_back(file);
    }
    return runLinker(arguments);
  }();
  for (const std::string &file : temporaries)
    llvm::sys::fs::remove(file);
  return error;
}

Error fi::cpu::writePackageFiles(StringRef manifest,
                                 llvm::ArrayRef<ObjectCode> objects,
                                 StringRef directory) {
  if (Error error =
          linkSharedObject(objects, inDirectory(directory, "kernels.so")))
    return error;
  if (Error error = writeFile(inDirectory(directory, "manifest.json"),
                              [&](llvm::raw_ostream &os) { os << manifest; }))
    return error;
  return writeChecksums(directory, {"manifest.json", "kernels.so"});
}
