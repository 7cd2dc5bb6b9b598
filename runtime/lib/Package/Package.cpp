//===- Package.cpp - Opening packages -------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a package directory or a package in memory, checks that this machine
// and this runtime can serve it, and finds every kernel before anything runs.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "../Device/Chip.h"
#include "../Support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <memory>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace fi::runtime {
namespace {

struct Releaser {
  void operator()(fi_package *package) const { release(package); }
};
using PackagePtr = std::unique_ptr<fi_package, Releaser>;

/// The widest vectors of this machine in bits, or 0 if that is not known.
int64_t hostVectorBits() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return 512;
  return __builtin_cpu_supports("avx2") ? 256 : 128;
#else
  return 0;
#endif
}

/// Whether this machine has a CPU feature. A name from a newer compiler is one
/// that it cannot be known to have.
bool hostHas(const std::string &feature) {
#if defined(__x86_64__)
#define FI_FEATURE(name)                                                       \
  if (feature == name)                                                         \
    return __builtin_cpu_supports(name);
  __builtin_cpu_init();
  FI_FEATURE("sse3")
  FI_FEATURE("ssse3")
  FI_FEATURE("sse4.1")
  FI_FEATURE("sse4.2")
  FI_FEATURE("popcnt")
  FI_FEATURE("avx")
  FI_FEATURE("avx2")
  FI_FEATURE("bmi")
  FI_FEATURE("bmi2")
  FI_FEATURE("f16c")
  FI_FEATURE("fma")
  FI_FEATURE("lzcnt")
  FI_FEATURE("movbe")
  FI_FEATURE("avx512f")
  FI_FEATURE("avx512bw")
  FI_FEATURE("avx512cd")
  FI_FEATURE("avx512dq")
  FI_FEATURE("avx512vl")
  FI_FEATURE("avx512bf16")
#undef FI_FEATURE
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (feature == "amx-bf16" || feature == "amx-tile")
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (d >> (feature == "amx-bf16" ? 22 : 24) & 1);
#endif
  return false;
}

/// The kernel gives the tile registers to processes that ask for them.
bool mayUseTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr int request = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, request, tileData) == 0;
#else
  return false;
#endif
}

/// The loader maps what an object's headers promise, and the process dies at
/// the first access behind the end of a file that was cut.
bool isWholeObject(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), std::fclose);
  // What is not there is the loader's to report.
  if (!file)
    return true;
  Elf64_Ehdr header;
  if (std::fread(&header, sizeof(header), 1, file.get()) != 1 ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr) ||
      std::fseek(file.get(), 0, SEEK_END) != 0)
    return false;
  long end = std::ftell(file.get());
  if (end < 0 || header.e_phoff > uint64_t(end) ||
      std::fseek(file.get(), long(header.e_phoff), SEEK_SET) != 0)
    return false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (std::fread(&segment, sizeof(segment), 1, file.get()) != 1)
      return false;
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > uint64_t(end) ||
         segment.p_filesz > uint64_t(end) - segment.p_offset))
      return false;
  }
  return true;
}

fi_status checkTarget(const Manifest &m) {
  if (m.onDevice())
    return FI_OK; // against the device that is planned for
  if (m.targetKind != "cpu")
    return fail(FI_UNSUPPORTED,
                "package '%s': target '%s' is not supported by this runtime, "
                "which runs 'cpu' and 'cuda'; compile the program for one of "
                "them",
                m.program.c_str(), m.targetKind.c_str());
  int64_t host = hostVectorBits();
  if (host && m.vectorBits > host)
    return fail(FI_UNSUPPORTED,
                "package '%s': compiled for cpu '%s' with vectors of %lld "
                "bits, but this machine has %lld; compile it for this machine",
                m.program.c_str(), m.targetCpu.c_str(),
                static_cast<long long>(m.vectorBits),
                static_cast<long long>(host));
  for (const std::string &feature : m.features)
    if (!hostHas(feature))
      return fail(FI_UNSUPPORTED,
                  "package '%s': compiled for cpu '%s' with feature '%s', "
                  "which this machine does not have; compile it for this "
                  "machine",
                  m.program.c_str(), m.targetCpu.c_str(), feature.c_str());
  for (const std::string &feature : m.features)
    if (feature == "amx-tile" && !mayUseTiles())
      return fail(FI_UNSUPPORTED,
                  "package '%s': compiled for feature 'amx-tile', which the "
                  "operating system does not give to this process; compile it "
                  "without",
                  m.program.c_str());
  return FI_OK;
}

fi_status bind(fi_package &package, fi_symbol_lookup lookup, void *context) {
  Manifest &m = package.manifest;
  void *version = lookup(context, FI_ABI_VERSION_SYMBOL);
  if (!version)
    return fail(FI_INVALID_PACKAGE,
                "package '%s': symbol '" FI_ABI_VERSION_SYMBOL
                "' is missing from its code",
                m.program.c_str());
  int32_t got;
  std::memcpy(&got, version, sizeof(got));
  if (got != FI_ABI_VERSION)
    return fail(FI_INVALID_PACKAGE,
                "package '%s': its code has kernel abi %d, but this runtime "
                "has %d; compile the package again",
                m.program.c_str(), got, FI_ABI_VERSION);
  auto find = [&](const std::string &symbol, fi_cpu_kernel &kernel) {
    kernel = reinterpret_cast<fi_cpu_kernel>(lookup(context, symbol.c_str()));
    if (kernel)
      return FI_OK;
    return fail(FI_INVALID_PACKAGE,
                "package '%s': kernel '%s' is named in the manifest but "
                "missing from the code",
                m.program.c_str(), symbol.c_str());
  };
  for (Stage &stage : m.stages) {
    for (Body &body : stage.bodies)
      FI_TRY(find(body.symbol, body.kernel));
    for (Merge &merge : stage.merges)
      FI_TRY(find(merge.symbol, merge.kernel));
  }
  return FI_OK;
}

/// Looks at the code for a device, as far as that needs no device.
fi_status checkCode(const fi_package &package) {
  const Manifest &m = package.manifest;
  const char *name = m.program.c_str();
  if (package.ptx.empty() && package.cubin.empty())
    return fail(FI_INVALID_PACKAGE,
                "package '%s': expected PTX or machine code for target 'cuda', "
                "but it has neither",
                name);
  if (!package.cubin.empty() && m.cubinChip.empty())
    return fail(FI_INVALID_PACKAGE,
                "package '%s': it has machine code, but the manifest's target "
                "has no 'cubin' that says for which chip",
                name);
  if (!package.cubin.empty() && package.cubin.compare(0, 4, ELFMAG) != 0)
    return fail(FI_INVALID_PACKAGE,
                "package '%s': expected machine code (an ELF object), but the "
                "cubin is something else",
                name);
  if (package.ptx.empty())
    return FI_OK;
  if (package.ptx.find('\0') != std::string::npos ||
      package.ptx.find(".version") == std::string::npos)
    return fail(FI_INVALID_PACKAGE,
                "package '%s': expected PTX with a .version, but its text is "
                "something else (truncated or damaged file)",
                name);
  auto find = [&](const std::string &symbol) {
    size_t at = 0;
    while ((at = package.ptx.find(symbol, at)) != std::string::npos) {
      size_t end = at + symbol.size();
      bool begins =
          at > 0 && (package.ptx[at - 1] == ' ' || package.ptx[at - 1] == '\t');
      char next = end < package.ptx.size() ? package.ptx[end] : 0;
      if (begins && (next == '(' || next == ' ' || next == '\n'))
        return FI_OK;
      at = end;
    }
    return fail(FI_INVALID_PACKAGE,
                "package '%s': kernel '%s' is named in the manifest but "
                "missing from the code",
                name, symbol.c_str());
  };
  for (const Stage &stage : m.stages) {
    for (const Body &body : stage.bodies)
      FI_TRY(find(body.symbol));
    for (const Merge &merge : stage.merges)
      FI_TRY(find(merge.symbol));
  }
  return FI_OK;
}

fi_status readFile(const std::string &path, std::string &text) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file)
    return fail(FI_INVALID_PACKAGE, "package: cannot open '%s': %s",
                path.c_str(), std::strerror(errno));
  char chunk[1 << 14];
  while (size_t n = std::fread(chunk, 1, sizeof(chunk), file.get())) {
    text.append(chunk, n);
    if (text.size() > (size_t(1) << 28))
      return fail(FI_INVALID_PACKAGE,
                  "package: '%s' is larger than a part of a package can be",
                  path.c_str());
  }
  if (std::ferror(file.get()))
    return fail(FI_INVALID_PACKAGE, "package: cannot read '%s': %s",
                path.c_str(), std::strerror(errno));
  return FI_OK;
}

} // namespace

void retain(fi_package *package) {
  package->references.fetch_add(1, std::memory_order_relaxed);
}

void release(fi_package *package) {
  if (!package ||
      package->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  for (fi_package *variant : package->variants)
    release(variant);
  if (package->library)
    dlclose(package->library);
  delete package;
}

fi_status openPackageFromMemory(const char *manifest, size_t length,
                                fi_symbol_lookup lookup, void *context,
                                fi_package **package) {
  PackagePtr opened(new fi_package);
  FI_TRY(parseManifest(manifest, length, opened->manifest));
  FI_TRY(checkTarget(opened->manifest));
  if (opened->manifest.onDevice())
    return fail(FI_INVALID_ARGUMENT,
                "package '%s': expected a target 'cpu' for functions in this "
                "process, but got 'cuda'; open it with fi_package_from_code",
                opened->manifest.program.c_str());
  FI_TRY(bind(*opened, lookup, context));
  *package = opened.release();
  return FI_OK;
}

fi_status openPackageFromCode(const char *manifest, size_t length,
                              const fi_code *codes, int32_t count,
                              fi_package **package) {
  PackagePtr opened(new fi_package);
  FI_TRY(parseManifest(manifest, length, opened->manifest));
  FI_TRY(checkTarget(opened->manifest));
  if (!opened->manifest.onDevice())
    return fail(FI_INVALID_ARGUMENT,
                "package '%s': expected a target 'cuda' for code in memory, "
                "but got 'cpu'; open it with fi_package_from_memory",
                opened->manifest.program.c_str());
  for (int32_t i = 0; i < count; ++i) {
    const fi_code &code = codes[i];
    if (!code.data || !code.bytes ||
        (code.kind != FI_DRIVER_PTX && code.kind != FI_DRIVER_CUBIN))
      return fail(FI_INVALID_ARGUMENT,
                  "package '%s': codes[%d]: expected PTX (kind 0) or machine "
                  "code (kind 1), but got kind %d with %zu bytes at %p",
                  opened->manifest.program.c_str(), i, code.kind, code.bytes,
                  code.data);
    std::string &text =
        code.kind == FI_DRIVER_PTX ? opened->ptx : opened->cubin;
    text.assign(static_cast<const char *>(code.data), code.bytes);
    // A text may come with its zero byte.
    if (code.kind == FI_DRIVER_PTX && text.back() == 0)
      text.pop_back();
  }
  FI_TRY(checkCode(*opened));
  *package = opened.release();
  return FI_OK;
}

/// Whether callers may take either.
static bool hasSameSignature(const Manifest &a, const Manifest &b) {
  auto isSame = [](const auto &x, const auto &y, auto equal) {
    return x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(), equal);
  };
  return a.program == b.program &&
         isSame(a.arguments, b.arguments,
                [](const Argument &x, const Argument &y) {
                  return x.name == y.name && x.group == y.group &&
                         x.kind == y.kind && x.dtype == y.dtype &&
                         x.shape == y.shape;
                }) &&
         isSame(a.results, b.results, [](const Output &x, const Output &y) {
           return x.name == y.name && x.dtype == y.dtype &&
                  x.shape == y.shape &&
                  x.rowsOf.argument == y.rowsOf.argument &&
                  x.rowsOf.count == y.rowsOf.count;
         });
}

/// Opens a package for each of several targets, in a directory of its name.
static fi_status openVariants(const std::string &directory,
                              const std::vector<std::string> &chips,
                              fi_package **package) {
  PackagePtr opened(new fi_package);
  for (const std::string &chip : chips) {
    fi_package *variant = nullptr;
    FI_TRY(openPackage((directory + "/" + chip).c_str(), &variant));
    opened->variants.push_back(variant);
    const Manifest &first = opened->variants.front()->manifest;
    const Manifest &m = variant->manifest;
    if (m.chip != chip || !m.onDevice())
      return fail(FI_INVALID_PACKAGE,
                  "package '%s': expected code for %s in '%s/%s', but it is "
                  "for %s",
                  m.program.c_str(), chip.c_str(), directory.c_str(),
                  chip.c_str(), m.onDevice() ? m.chip.c_str() : "the cpu");
    if (!hasSameSignature(first, m))
      return fail(FI_INVALID_PACKAGE,
                  "package '%s': expected programs with one signature, but "
                  "those for %s and %s differ; compile the package again",
                  m.program.c_str(), first.chip.c_str(), chip.c_str());
  }
  std::sort(opened->variants.begin(), opened->variants.end(),
            [](const fi_package *a, const fi_package *b) {
              return isBetterChip(a->manifest.chip, b->manifest.chip);
            });
  opened->manifest = opened->variants.front()->manifest;
  *package = opened.release();
  return FI_OK;
}

fi_status openPackage(const char *path, fi_package **package) {
  std::string directory = path, text;
  FI_TRY(readFile(directory + "/manifest.json", text));
  std::vector<std::string> chips;
  FI_TRY(readTargets(text.data(), text.size(), chips));
  if (!chips.empty())
    return openVariants(directory, chips, package);
  PackagePtr opened(new fi_package);
  FI_TRY(parseManifest(text.data(), text.size(), opened->manifest));
  FI_TRY(checkTarget(opened->manifest));
  if (opened->manifest.onDevice()) {
    bool cubin = !opened->manifest.cubinChip.empty();
    if (cubin)
      FI_TRY(readFile(directory + "/kernels.cubin", opened->cubin));
    // Machine code alone serves its chip.
    if (!cubin || access((directory + "/kernels.ptx").c_str(), R_OK) == 0)
      FI_TRY(readFile(directory + "/kernels.ptx", opened->ptx));
    FI_TRY(checkCode(*opened));
    *package = opened.release();
    return FI_OK;
  }
  if (!isWholeObject(directory + "/kernels.so"))
    return fail(FI_INVALID_PACKAGE,
                "package '%s': cannot load its code: expected a whole ELF "
                "object, but '%s/kernels.so' is truncated or damaged; compile "
                "the package again",
                path, path);
  opened->library =
      dlopen((directory + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened->library) {
    const char *why = dlerror();
    return fail(FI_INVALID_PACKAGE, "package '%s': cannot load its code: %s",
                path, why ? why : "unknown error");
  }
  FI_TRY(bind(
      *opened,
      [](void *library, const char *symbol) { return dlsym(library, symbol); },
      opened->library));
  *package = opened.release();
  return FI_OK;
}

} // namespace fi::runtime
