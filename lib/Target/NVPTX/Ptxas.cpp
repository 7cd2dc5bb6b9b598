//===- Ptxas.cpp - machine code from PTX, where ptxas is there ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/NVPTX/Ptxas.h"
#include "fi/Support/File.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace fi;
using namespace fi::nvptx;
using llvm::createStringError;
using llvm::StringRef;
using llvm::Twine;

static constexpr llvm::StringLiteral kWellKnown = "/usr/local/cuda/bin/ptxas";

llvm::Expected<std::string> fi::nvptx::findPtxas() {
  if (auto named = llvm::sys::Process::GetEnv("FI_PTXAS")) {
    if (named->empty() || llvm::sys::fs::can_execute(*named))
      return *named;
    return createStringError("expected FI_PTXAS to name ptxas, or to be empty "
                             "for none, but got '" +
                             *named + "', which is no program");
  }
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  if (llvm::sys::fs::can_execute(kWellKnown))
    return kWellKnown.str();
  return std::string();
}

namespace {

struct Output {
  int status = 0;
  /// Standard output and standard error.
  std::string text;
};

} // namespace

/// Runs a program; `directory` is for what it prints.
static llvm::Expected<Output> run(StringRef program,
                                  llvm::ArrayRef<StringRef> arguments,
                                  StringRef directory) {
  // Longer than any kernel takes; a program that hangs must not hang us.
  constexpr unsigned patience = 600;
  std::string path = (directory + "/output").str();
  llvm::SmallVector<StringRef> all = {program};
  llvm::append_range(all, arguments);
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(path),
                                          StringRef(path)};
  std::string why;
  Output output;
  output.status = llvm::sys::ExecuteAndWait(
      program, all, std::nullopt, redirects, patience, /*MemoryLimit=*/0, &why);
  if (output.status < 0)
    return createStringError("cannot run '" + program + "': " + why);
  auto text = readFile(path);
  if (!text)
    return text.takeError();
  output.text = (*text)->getBuffer().str();
  return output;
}

/// A directory for one run, removed by `remove`.
static llvm::Expected<std::string> makeDirectory() {
  llvm::SmallString<128> path;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("fi-ptxas", path))
    return createStringError("cannot make a temporary directory: " +
                             code.message());
  return path.str().str();
}

llvm::Expected<std::string> fi::nvptx::getPtxasVersion(StringRef ptxas) {
  auto directory = makeDirectory();
  if (!directory)
    return directory.takeError();
  llvm::scope_exit remove(
      [&] { llvm::sys::fs::remove_directories(*directory); });
  auto output = run(ptxas, {"--version"}, *directory);
  if (!output)
    return output.takeError();
  StringRef version =
      StringRef(output->text).split(", V").second.take_while([](char c) {
        return llvm::isDigit(c) || c == '.';
      });
  if (version.empty())
    return createStringError("expected '" + ptxas +
                             "' to be ptxas, but it does not tell a version");
  return version.str();
}

/// The number before `unit` in a line, or 0.
static uint64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(at).rtrim();
  digits = digits.drop_front(digits.find_last_not_of("0123456789") + 1);
  uint64_t value = 0;
  digits.getAsInteger(10, value);
  return value;
}

void fi::nvptx::readPtxasOutput(StringRef text, Assembly &assembly) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  // Of a function that is no kernel nothing is kept.
  KernelResources *current = nullptr;
  for (StringRef line : lines) {
    if (line.contains("Compiling entry function")) {
      assembly.kernels.emplace_back();
      assembly.kernels.back().kernel =
          line.split('\'').second.split('\'').first.str();
    } else if (line.contains("Function properties for ")) {
      StringRef name = line.split("Function properties for ").second.trim();
      current = nullptr;
      for (KernelResources &kernel : assembly.kernels)
        if (kernel.kernel == name)
          current = &kernel;
    } else if (line.contains("bytes stack frame") && current) {
      current->stack = numberBefore(line, " bytes stack frame");
      current->spillStores = numberBefore(line, " bytes spill stores");
      current->spillLoads = numberBefore(line, " bytes spill loads");
    } else if (line.contains(": Used ") && current) {
      current->registers = numberBefore(line, " registers");
      current->barriers = numberBefore(line, " barriers");
      current->staticShared = numberBefore(line, " bytes smem");
    } else if (line.contains("warning") || line.contains("(C7")) {
      // "ptxas info    : (C7510) ...", "ptxas x.ptx, line 3; warning : ...".
      StringRef sentence = line.split(": ").second.trim();
      assembly.warnings.push_back(
          (sentence.empty() ? line.trim() : sentence).str());
    }
  }
}

/// The location that `.loc` and `.file` give for a line of PTX, or nothing.
static std::string findLocation(StringRef ptx, unsigned number) {
  llvm::SmallVector<StringRef> lines;
  ptx.split(lines, '\n');
  StringRef file, line;
  for (StringRef text : llvm::reverse(llvm::ArrayRef(lines).take_front(number)))
    if (text.trim().consume_front(".loc")) {
      llvm::SmallVector<StringRef, 4> words;
      llvm::SplitString(text, words);
      if (words.size() < 3)
        return "";
      file = words[1];
      line = words[2];
      break;
    }
  if (file.empty())
    return "";
  for (StringRef text : lines) {
    llvm::SmallVector<StringRef, 4> words;
    llvm::SplitString(text, words);
    if (words.size() >= 3 && words[0] == ".file" && words[1] == file)
      return (words[2].trim('"') + ":" + line).str();
  }
  return "";
}

/// What ptxas has against PTX, in a sentence.
static llvm::Error makeRefusal(StringRef text, StringRef ptx,
                               const sm::Target &target) {
  StringRef first = text.split('\n').first;
  for (StringRef rest = text; !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    if (line.contains("; error") || line.contains("; fatal") ||
        line.contains("error   :")) {
      first = line;
      break;
    }
  }
  unsigned number = numberBefore(first, ";");
  std::string location = number ? findLocation(ptx, number) : "";
  StringRef sentence = first.split(": ").second.trim();
  std::string message;
  llvm::raw_string_ostream os(message);
  if (!location.empty())
    os << location << ": ";
  os << "ptxas refuses kernels for " << target.name;
  if (number)
    os << " at line " << number << " of the PTX";
  os << ": " << (sentence.empty() ? first : sentence);
  return createStringError(message);
}

llvm::Expected<Assembly>
fi::nvptx::assemble(StringRef ptx, const sm::Target &target, StringRef ptxas) {
  auto directory = makeDirectory();
  if (!directory)
    return directory.takeError();
  llvm::scope_exit remove(
      [&] { llvm::sys::fs::remove_directories(*directory); });
  std::string input = *directory + "/kernels.ptx",
              result = *directory + "/kernels.cubin";
  if (llvm::Error error =
          writeFile(input, [&](llvm::raw_ostream &os) { os << ptx; }))
    return std::move(error);
  auto output =
      run(ptxas, {"-v", "-arch", target.chip, input, "-o", result}, *directory);
  if (!output)
    return output.takeError();
  if (output->status != 0)
    return makeRefusal(output->text, ptx, target);
  auto cubin = readFile(result);
  if (!cubin)
    return cubin.takeError();
  Assembly assembly;
  assembly.cubin = (*cubin)->getBuffer().str();
  readPtxasOutput(output->text, assembly);
  return assembly;
}
