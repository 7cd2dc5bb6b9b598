//===- Isolate.cpp - work in a child that may crash or hang ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Fuzz/Check.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fi;
using namespace fi::fuzz;
using llvm::StringRef;

static void writeAll(int to, StringRef text) {
  while (!text.empty()) {
    ssize_t written = ::write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      _exit(2);
    text = text.drop_front(written);
  }
}

Child fi::fuzz::isolate(
    llvm::function_ref<void(llvm::function_ref<void(StringRef)>)> work,
    double seconds) {
  Child child;
  int ends[2];
  // A child of another thread would keep the end that is written to.
  static std::mutex forking;
  std::unique_lock<std::mutex> lock(forking);
  if (pipe(ends) != 0) {
    child.end = "crash";
    child.message = std::string("no pipe: ") + std::strerror(errno);
    return child;
  }
  llvm::outs().flush();
  llvm::errs().flush();
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
      std::signal(signal, SIG_DFL);
    work([&](StringRef line) { writeAll(ends[1], (line + "\n").str()); });
    _exit(0);
  }
  close(ends[1]);
  lock.unlock();
  std::string text;
  bool isLate = false;
  while (pid > 0) {
    pollfd wait = {ends[0], POLLIN, 0};
    int ready = poll(&wait, 1, static_cast<int>(seconds * 1000));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0) {
      isLate = true;
      kill(pid, SIGKILL);
      break;
    }
    char buffer[4096];
    ssize_t size = read(ends[0], buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      break;
    text.append(buffer, size);
  }
  close(ends[0]);
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  llvm::SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  // Behind the last end of a line there is nothing, or half of one.
  for (StringRef line : llvm::ArrayRef(lines).drop_back())
    child.lines.push_back(line.str());
  if (isLate) {
    child.end = "hang";
    child.message = "no end after " + std::to_string(int(seconds)) + " s";
  } else if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    child.end = "crash";
    child.message = pid < 0 ? "no child"
                    : WIFSIGNALED(status)
                        ? strsignal(WTERMSIG(status))
                        : "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return child;
}

Finding fi::fuzz::checkIsolated(const RandomProgram &program, StringRef backend,
                                const mlir::DialectRegistry &registry,
                                double seconds) {
  Child child = isolate(
      [&](llvm::function_ref<void(StringRef)> report) {
        mlir::MLIRContext context(registry,
                                  mlir::MLIRContext::Threading::DISABLED);
        Finding finding = checkProgram(program, backend, context);
        report(finding.kind);
        report(llvm::join(llvm::split(finding.message, '\n'), "; "));
      },
      seconds);
  if (child.lines.size() == 2)
    return {child.lines[0], child.lines[1]};
  return {child.end, child.message};
}
