//===- File.cpp - whole files and JSON, with errors worth reading ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/File.h"
#include "llvm/Support/FileSystem.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<std::unique_ptr<llvm::MemoryBuffer>> fi::readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (std::error_code code = buffer.getError())
    return createStringError("cannot read '" + path + "': " + code.message());
  return std::move(*buffer);
}

Error fi::writeFile(StringRef path,
                    llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto failed = [&](const llvm::Twine &why) {
    return createStringError("cannot write '" + path + "': " + why);
  };
  if (path == "-") {
    write(llvm::outs());
    llvm::outs().flush();
    return Error::success();
  }
  if (llvm::sys::fs::is_directory(path))
    return failed("it is a directory");
  // A device or a pipe is written to, not replaced.
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) && llvm::sys::fs::exists(status) &&
      !llvm::sys::fs::is_regular_file(status)) {
    std::error_code code;
    llvm::raw_fd_ostream stream(path, code, llvm::sys::fs::CD_OpenExisting,
                                llvm::sys::fs::FA_Write,
                                llvm::sys::fs::OF_None);
    if (code)
      return failed(code.message());
    write(stream);
    stream.flush();
    code = stream.error();
    stream.clear_error();
    return code ? failed(code.message()) : Error::success();
  }
  auto file = llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%%%");
  if (!file)
    return failed(llvm::toString(file.takeError()));
  std::error_code code;
  {
    llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    write(stream);
    stream.flush();
    code = stream.error();
    // A stream that is destroyed with an error ends the process.
    stream.clear_error();
  }
  if (code) {
    llvm::consumeError(file->discard());
    return failed(code.message());
  }
  if (Error error = file->keep(path))
    return failed(llvm::toString(std::move(error)));
  return Error::success();
}

Expected<llvm::json::Value> fi::parseJson(StringRef text, StringRef name) {
  constexpr int kMaxDepth = 64;
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        return createStringError("'" + name +
                                 "': expected arrays and objects nested at "
                                 "most 64 deep, but got more");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  auto value = llvm::json::parse(text);
  if (!value)
    return createStringError(
        "'" + name + "' is not JSON: " + llvm::toString(value.takeError()));
  return value;
}

Error fi::checkNesting(StringRef text, StringRef name) {
  constexpr int kMaxDepth = 256;
  // Bytecode: its reader does not descend so.
  if (text.starts_with("ML\xefR"))
    return Error::success();
  // Angle brackets are counted apart, since `>` is also part of `->` and `>=`.
  int depth = 0, angles = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    StringRef rest = text.drop_front(i);
    switch (text[i]) {
    case '/':
      if (rest.starts_with("//")) {
        size_t end = text.find('\n', i);
        i = end == StringRef::npos ? text.size() : end;
      }
      break;
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      break;
    case '(':
    case '[':
    case '{':
      ++depth;
      break;
    case ')':
    case ']':
    case '}':
      depth = std::max(depth - 1, 0);
      break;
    case '<':
      ++angles;
      break;
    case '-':
      if (rest.starts_with("->"))
        ++i;
      break;
    case '>':
      angles = std::max(angles - 1, 0);
      break;
    default:
      break;
    }
    if (depth + angles > kMaxDepth)
      return createStringError("'" + name +
                               "': expected brackets nested at most 256 deep, "
                               "but got more");
  }
  return Error::success();
}
