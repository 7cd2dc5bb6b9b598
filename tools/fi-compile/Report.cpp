//===- Report.cpp - what was compiled for a model -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "fi/Support/File.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"

using namespace fi;
using llvm::Error;
using llvm::StringRef;
namespace json = llvm::json;

uint64_t ModelReport::getKernelsPerTarget() const {
  llvm::StringMap<uint64_t> counts;
  uint64_t most = 0;
  for (const KernelReport &kernel : kernels)
    most = std::max(most, ++counts[kernel.target]);
  return most;
}

json::Value ModelReport::toJSON() const {
  json::Array names, rows;
  for (const std::string &program : programs)
    names.push_back(json::Object{{"name", program}});
  for (const KernelReport &kernel : kernels) {
    json::Object row{{"program", kernel.program},
                     {"target", kernel.target},
                     {"symbol", kernel.symbol},
                     {"ptx", int64_t(kernel.ptx)}};
    if (kernel.registers) {
      row["code"] = int64_t(kernel.code);
      row["registers"] = int64_t(kernel.registers);
      row["spills"] = int64_t(kernel.spills);
    }
    rows.push_back(std::move(row));
  }
  return json::Object{{"model", model},
                      {"targets", json::Array(targets)},
                      {"programs", std::move(names)},
                      {"kernels", std::move(rows)},
                      {"kernels_per_target", int64_t(getKernelsPerTarget())},
                      {"bytes", int64_t(bytes)},
                      {"compressed_bytes", int64_t(compressedBytes)}};
}

void ModelReport::print(llvm::raw_ostream &os) const {
  auto row = [&](const auto &program, const auto &target, const auto &symbol,
                 const auto &ptx, const auto &code, const auto &registers,
                 const auto &spills) {
    os << llvm::left_justify(program, 18) << " "
       << llvm::left_justify(target, 8) << " " << llvm::left_justify(symbol, 36)
       << " " << llvm::right_justify(ptx, 9) << " "
       << llvm::right_justify(code, 9) << " "
       << llvm::right_justify(registers, 9) << " "
       << llvm::right_justify(spills, 7) << "\n";
  };
  row("program", "target", "kernel", "PTX", "code", "registers", "spills");
  for (const KernelReport &kernel : kernels) {
    auto number = [&](uint64_t value, bool isKnown) {
      return isKnown ? std::to_string(value) : std::string("-");
    };
    bool hasCode = kernel.registers > 0;
    row(kernel.program, kernel.target, kernel.symbol, number(kernel.ptx, true),
        number(kernel.code, hasCode), number(kernel.registers, hasCode),
        number(kernel.spills, hasCode));
  }
  os << model << ": " << programs.size() << " programs, "
     << getKernelsPerTarget() << " kernels for a target, " << bytes
     << " bytes, " << compressedBytes << " compressed\n";
}

std::vector<KernelReport>
fi::describeKernels(StringRef program, const sm::Target &target,
                    const gpu::CompiledPackage &package) {
  std::vector<KernelReport> kernels;
  // From one entry to the next; what comes before the first counts for it.
  constexpr llvm::StringLiteral kEntry = ".visible .entry ";
  StringRef text = package.ptx;
  for (size_t at = text.find(kEntry), begin = 0; at != StringRef::npos;) {
    StringRef rest = text.drop_front(at + kEntry.size());
    size_t next = text.find(kEntry, at + 1);
    KernelReport &kernel = kernels.emplace_back();
    kernel.program = program.str();
    kernel.target = target.name.str();
    kernel.symbol = rest.take_until([](char c) { return c == '('; }).str();
    kernel.ptx = std::min(next, text.size()) - begin;
    begin = at = next;
  }
  if (package.cubin.empty())
    return kernels;
  llvm::StringMap<uint64_t> sizes;
  auto object = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(package.cubin, "cubin"));
  if (object) {
    for (const llvm::object::SectionRef &section : (*object)->sections())
      if (auto name = section.getName())
        sizes[*name] = section.getSize();
      else
        llvm::consumeError(name.takeError());
  } else {
    llvm::consumeError(object.takeError());
  }
  for (KernelReport &kernel : kernels)
    for (const nvptx::KernelResources &resources : package.resources)
      if (resources.kernel == kernel.symbol) {
        kernel.code = sizes.lookup(".text." + kernel.symbol);
        kernel.registers = resources.registers;
        kernel.spills = resources.spillStores + resources.spillLoads;
      }
  return kernels;
}

Error fi::addFileSizes(StringRef directory, ModelReport &report) {
  std::error_code code;
  for (llvm::sys::fs::recursive_directory_iterator it(directory, code), end;
       it != end && !code; it.increment(code)) {
    if (llvm::sys::fs::is_directory(it->path()))
      continue;
    auto buffer = readFile(it->path());
    if (!buffer)
      return buffer.takeError();
    StringRef content = (*buffer)->getBuffer();
    report.bytes += content.size();
    llvm::SmallVector<uint8_t, 0> packed;
    if (llvm::compression::zlib::isAvailable())
      llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(content),
                                        packed);
    report.compressedBytes +=
        packed.empty() ? content.size() : uint64_t(packed.size());
  }
  if (code)
    return llvm::createStringError("cannot read '" + directory +
                                   "': " + code.message());
  return Error::success();
}
