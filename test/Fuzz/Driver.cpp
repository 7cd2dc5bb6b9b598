//===- Driver.cpp - runs a fuzz target without libFuzzer ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes libFuzzer's options, with any compiler and without instrumentation:
//
//   fi-x-fuzzer [-runs=N] [-seed=N] [-max_total_time=S] [-timeout=S]
//               [-max_len=N] [-artifact_prefix=DIR/] DIRECTORY...
//   fi-x-fuzzer FILE...
//
// Tries the files of the directories, in which `// -----` parts inputs, then N
// inputs made of them. They are tried in children: what crashes or hangs is
// saved, made smaller as long as it crashes, and the rest goes on. Inputs with
// outcomes that are new join the corpus. N inputs of a seed are always the
// same, unless the time is over first. Files alone are tried in this process.
//
//===----------------------------------------------------------------------===//

#include "Fuzzing.h"
#include "Mutations.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fi::fuzzing;
namespace fs = std::filesystem;

namespace {

struct Options {
  uint64_t runs = 10000, seed = 1;
  double seconds = 3600, timeout = 10;
  size_t maxLength = 1 << 15;
  std::string artifacts = "fuzz-findings/";
  std::vector<std::string> paths;
};

/// Inputs that one child tries. What it keeps comes to the others' corpus.
constexpr uint64_t kChunk = 4000;
constexpr size_t kArena = 16 << 20, kOutcomes = 1 << 20;

/// What a child tells its parent.
struct Shared {
  volatile uint64_t index; // of the input that it tries
  volatile size_t size;
  volatile size_t kept; // bytes of the arena
  volatile uint64_t outcomes;
  char input[1 << 20];
  char arena[kArena];
  uint8_t seen[kOutcomes / 8];
};

class Driver {
public:
  explicit Driver(Options options) : options(std::move(options)) {
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("no shared memory");
      std::exit(2);
    }
    shared = static_cast<Shared *>(memory);
  }
  int run();

private:
  enum class End { Fine, Crash, Hang };

  void load();
  std::string makeInput(uint64_t index) const;
  void tryOne(uint64_t index, const std::string &input, bool keep);
  [[noreturn]] void tryAll(uint64_t from, uint64_t to);
  End await(pid_t child, std::string &why);
  void handleFinding(End end, const std::string &why);
  bool crashes(const std::string &input);
  std::string reduce(std::string input);
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  Options options;
  Corpus corpus;
  size_t given = 0; // of the corpus: files
  Shared *shared = nullptr;
  unsigned findings = 0;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
};

} // namespace

static std::string readFile(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

void Driver::load() {
  std::vector<fs::path> files;
  for (const std::string &path : options.paths)
    for (const auto &entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file())
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path &file : files) {
    std::string text = readFile(file), mark = "// -----";
    for (size_t at = 0; at != std::string::npos;) {
      size_t end = text.find(mark, at);
      std::string part = text.substr(at, end - at);
      if (part.size() <= options.maxLength)
        corpus.add(std::move(part));
      at = end == std::string::npos ? end : end + mark.size();
    }
  }
  if (corpus.size() == 0)
    corpus.add("");
  given = corpus.size();
}

std::string Driver::makeInput(uint64_t index) const {
  if (index < given)
    return corpus[index];
  Random random(options.seed * 0x9e3779b97f4a7c15 + index);
  return corpus.mutate(random, options.maxLength);
}

/// `keep`: whether the corpus lacks it.
void Driver::tryOne(uint64_t index, const std::string &input, bool keep) {
  std::memcpy(shared->input, input.data(), input.size());
  shared->size = input.size();
  shared->index = index;
  outcome = 0;
  // A copy of its own size: an access behind it is seen.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  uint64_t bit = outcome % kOutcomes;
  uint8_t &byte = shared->seen[bit / 8], mask = 1 << (bit % 8);
  if (outcome == 0 || (byte & mask))
    return;
  byte |= mask;
  shared->outcomes = shared->outcomes + 1;
  if (!keep)
    return;
  size_t need = sizeof(size_t) + input.size(), at = shared->kept;
  if (at + need > kArena)
    return;
  size_t size = input.size();
  std::memcpy(shared->arena + at, &size, sizeof(size));
  std::memcpy(shared->arena + at + sizeof(size), input.data(), size);
  shared->kept = at + need;
}

/// In a child.
static void prepareChild() {
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    std::signal(signal, SIG_DFL);
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#ifndef FI_SANITIZED
  // What an input makes it allocate is bounded, too.
  rlimit memory = {size_t(6) << 30, size_t(6) << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

void Driver::tryAll(uint64_t from, uint64_t to) {
  prepareChild();
  for (uint64_t index = from; index < to; ++index) {
    tryOne(index, makeInput(index), /*keep=*/index >= given);
    if (elapsed() > options.seconds)
      break;
  }
  shared->index = shared->index + 1;
  // No destructors: they are not what is tried.
  _exit(0);
}

Driver::End Driver::await(pid_t child, std::string &why) {
  uint64_t last = shared->index;
  double since = elapsed();
  int status = 0;
  for (unsigned wait = 200;; wait = std::min(wait * 2, 20000u)) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child)
      break;
    if (done < 0 && errno != EINTR)
      return End::Crash;
    if (shared->index != last) {
      last = shared->index;
      since = elapsed();
    } else if (elapsed() - since > options.timeout) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      why = "no end after " + std::to_string(int(options.timeout)) + " s";
      return End::Hang;
    }
    usleep(wait);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return End::Fine;
  why = WIFSIGNALED(status)
            ? strsignal(WTERMSIG(status))
            : "exit code " + std::to_string(WEXITSTATUS(status));
  return End::Crash;
}

bool Driver::crashes(const std::string &input) {
  pid_t child = fork();
  if (child == 0) {
    // One report is enough.
    std::freopen("/dev/null", "w", stderr);
    prepareChild();
    tryOne(0, input, /*keep=*/false);
    _exit(0);
  }
  std::string why;
  return child > 0 && await(child, why) == End::Crash;
}

/// Takes out pieces, of half the input first, then smaller ones.
std::string Driver::reduce(std::string input) {
  int left = 600;
  for (size_t piece = input.size() / 2; piece > 0 && left > 0; piece /= 2)
    for (size_t at = 0; at < input.size() && left > 0; --left) {
      std::string smaller = input;
      smaller.erase(at, piece);
      if (crashes(smaller))
        input = std::move(smaller);
      else
        at += piece;
    }
  return input;
}

void Driver::handleFinding(End end, const std::string &why) {
  std::string input(shared->input, shared->size);
  uint64_t index = shared->index;
  if (end == End::Crash)
    input = reduce(std::move(input));
  fs::path prefix = options.artifacts;
  if (prefix.has_parent_path())
    fs::create_directories(prefix.parent_path());
  std::string path = options.artifacts +
                     (end == End::Crash ? "crash-" : "timeout-") +
                     std::to_string(options.seed) + "-" + std::to_string(index);
  std::ofstream(path, std::ios::binary) << input;
  std::printf("input %llu: %s, saved as '%s'\n", (unsigned long long)index,
              why.c_str(), path.c_str());
  std::fflush(stdout);
  ++findings;
}

int Driver::run() {
  load();
  uint64_t next = 0, total = given + options.runs;
  while (next < total && elapsed() < options.seconds && findings < 20) {
    uint64_t end = std::min(total, next + kChunk);
    if (next < given)
      end = given;
    shared->index = next;
    shared->kept = 0;
    pid_t child = fork();
    if (child == 0)
      tryAll(next, end);
    if (child < 0) {
      std::perror("no child");
      return 2;
    }
    std::string why;
    End how = await(child, why);
    for (size_t at = 0; at < shared->kept;) {
      size_t size;
      std::memcpy(&size, shared->arena + at, sizeof(size));
      at += sizeof(size);
      corpus.add(std::string(shared->arena + at, size));
      at += size;
    }
    next = shared->index;
    if (how != End::Fine) {
      handleFinding(how, why);
      ++next;
    }
  }
  std::printf("%llu inputs, %zu of them files, %llu outcomes in %.1f s, "
              "%u findings\n",
              (unsigned long long)next, std::min<size_t>(given, next),
              (unsigned long long)shared->outcomes, elapsed(), findings);
  return findings ? 1 : 0;
}

/// Takes the number behind "name=" in an argument with one dash or two.
static bool takeNumber(std::string_view argument, std::string_view name,
                       double &value) {
  argument.remove_prefix(argument.substr(0, 2) == "--" ? 2 : 1);
  if (argument.substr(0, name.size()) != name ||
      argument.substr(name.size(), 1) != "=")
    return false;
  std::string text(argument.substr(name.size() + 1));
  char *end = nullptr;
  value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !(value >= 0)) {
    std::fprintf(stderr, "expected a number, but got '-%s'\n",
                 std::string(argument).c_str());
    std::exit(2);
  }
  return true;
}

int main(int argc, char **argv) {
  Options options;
  bool areFiles = true;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    double value;
    if (argument[0] != '-') {
      areFiles &= fs::is_regular_file(argument);
      options.paths.push_back(argument);
    } else if (takeNumber(argument, "runs", value)) {
      options.runs = uint64_t(value);
    } else if (takeNumber(argument, "seed", value)) {
      options.seed = uint64_t(value);
    } else if (takeNumber(argument, "max_total_time", value)) {
      options.seconds = value;
    } else if (takeNumber(argument, "timeout", value)) {
      options.timeout = value;
    } else if (takeNumber(argument, "max_len", value)) {
      options.maxLength = std::min<size_t>(value, sizeof(Shared::input));
    } else if (argument.rfind("-artifact_prefix=", 0) == 0) {
      options.artifacts = argument.substr(17);
    } else {
      std::fprintf(stderr,
                   "unknown option '%s'; allowed are -runs, -seed, "
                   "-max_total_time, -timeout, -max_len, -artifact_prefix\n",
                   argv[i]);
      return 2;
    }
  }
  if (!options.paths.empty() && areFiles) {
    for (const std::string &path : options.paths) {
      std::string text = readFile(path);
      std::vector<uint8_t> bytes(text.begin(), text.end());
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    return 0;
  }
  for (const std::string &path : options.paths)
    if (!fs::is_directory(path)) {
      std::fprintf(stderr, "expected directories or files, but got '%s'\n",
                   path.c_str());
      return 2;
    }
  return Driver(std::move(options)).run();
}
