//===- Npy.cpp - NumPy's array files --------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .npy file: the magic "\x93NUMPY", a version, the length of the header, the
// header (a Python dict with descr, fortran_order and shape), the elements.
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Npy.h"
#include "fi/Support/File.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include <cstring>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringRef kMagic("\x93NUMPY", 6);

namespace {

struct Header {
  std::string descr;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t, 4> shape;
};

/// Reads the dict of a header: string keys, and as values a string, True, False
/// or a tuple of non-negative integers.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  /// Returns what is wrong, or an empty string.
  std::string parse(Header &header) {
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return "expected a dict";
    while (!take('}')) {
      std::string key;
      if (!parseString(key))
        return "expected a key in quotes";
      if (!take(':'))
        return "expected ':' after '" + key + "'";
      if (key == "descr") {
        hasDescr = true;
        if (peek() == '[')
          return "structured arrays are not supported";
        if (!parseString(header.descr))
          return "expected a string as 'descr'";
      } else if (key == "fortran_order") {
        hasOrder = true;
        if (takeWord("True"))
          header.fortranOrder = true;
        else if (!takeWord("False"))
          return "expected True or False as 'fortran_order'";
      } else if (key == "shape") {
        hasShape = true;
        if (!parseShape(header.shape))
          return "expected a tuple of sizes as 'shape'";
      } else {
        return "unknown key '" + key + "'";
      }
      if (!take(',') && peek() != '}')
        return "expected ',' or '}' after the value of '" + key + "'";
    }
    if (!hasDescr || !hasOrder || !hasShape)
      return "expected 'descr', 'fortran_order' and 'shape'";
    return "";
  }

private:
  void skipBlanks() { rest = rest.ltrim(" \t\n"); }
  char peek() {
    skipBlanks();
    return rest.empty() ? '\0' : rest.front();
  }
  bool take(char c) {
    if (peek() != c || rest.empty())
      return false;
    rest = rest.drop_front();
    return true;
  }
  bool takeWord(StringRef word) {
    skipBlanks();
    return rest.consume_front(word);
  }
  bool parseString(std::string &out) {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      return false;
    rest = rest.drop_front();
    size_t end = rest.find(quote);
    if (end == StringRef::npos)
      return false;
    out = rest.take_front(end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }
  bool parseShape(llvm::SmallVectorImpl<int64_t> &shape) {
    shape.clear();
    if (!take('('))
      return false;
    while (!take(')')) {
      int64_t size;
      skipBlanks();
      if (rest.consumeInteger(10, size) || size < 0)
        return false;
      rest.consume_front("L"); // written by Python 2
      shape.push_back(size);
      if (!take(',') && peek() != ')')
        return false;
    }
    return true;
  }

  StringRef rest;
};

} // namespace

static std::string printable(StringRef text) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::printEscapedString(text.take_front(40), stream);
  return out;
}

static Expected<DType> parseDescr(StringRef descr, StringRef name) {
  static constexpr std::pair<StringRef, DType> kTypes[] = {
      {"<f4", DType::F32},  {"<f2", DType::F16}, {"<f8", DType::F64},
      {"<i4", DType::I32},  {"<i8", DType::I64}, {"|i1", DType::I8},
      {"<i1", DType::I8},   {"|b1", DType::I1},  {"<b1", DType::I1},
      {"<V2", DType::BF16}, {"|V2", DType::BF16}};
  for (auto &[candidate, type] : kTypes)
    if (descr == candidate)
      return type;
  if (descr == "<u2" &&
      (name.ends_with(".bf16.npy") || name.ends_with(".bf16")))
    return DType::BF16;
  // numpy has no such type: bytes, named by the file.
  if (descr == "|u1" || descr == "<V1" || descr == "|V1")
    for (DType type : {DType::F8E4M3FN, DType::F8E5M2, DType::F8E8M0FNU})
      if (name.ends_with(("." + fi::getName(type) + ".npy").str()) ||
          name.ends_with(("." + fi::getName(type)).str()))
        return type;
  std::string file = ("'" + name + "': ").str();
  if (descr == "|u1" || descr == "<V1" || descr == "|V1")
    return createStringError(
        file + "element type '" + printable(descr) +
        "' is read as f8 only in a file named *.f8E4M3FN.npy or "
        "*.f8E5M2.npy; rename the file, or convert its elements");
  if (descr == "<u2")
    return createStringError(
        file + "element type '<u2' is read as bf16 only in a file named "
               "*.bf16.npy; rename the file, or convert its elements");
  if (descr.starts_with(">"))
    return createStringError(file +
                             "expected little-endian elements, but got '" +
                             printable(descr) + "'; convert it with astype");
  return createStringError(file + "element type '" + printable(descr) +
                           "' is not supported; allowed are f4, f2, f8, i4, "
                           "i8, i1, b1 and V2 (bf16), little endian");
}

/// Copies elements that lie in column-major order.
static void copyFromFortranOrder(const HostTensor &to, const char *from) {
  int64_t count = to.getNumElements(), bytes = getByteSize(to.getType());
  llvm::SmallVector<int64_t, 4> index(to.getRank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to.at(index), from + i * bytes, bytes);
    for (int64_t d = 0; d < to.getRank(); ++d) {
      if (++index[d] < to.getSize(d))
        break;
      index[d] = 0;
    }
  }
}

Expected<HostTensor> fi::parseNpy(StringRef bytes, StringRef name) {
  std::string file = ("'" + name + "': ").str();
  if (!bytes.starts_with(kMagic))
    return createStringError(file + "expected a .npy file, but it does not "
                                    "begin with the bytes \\x93NUMPY");
  auto truncated = [&](const Twine &what, uint64_t wanted, uint64_t got) {
    return createStringError(
        "'" + name + "': the file is truncated: expected " + Twine(wanted) +
        " bytes of " + what + ", but got " + Twine(got));
  };
  if (bytes.size() < 10)
    return truncated("magic, version and header length", 10, bytes.size());
  unsigned major = static_cast<uint8_t>(bytes[6]);
  if (major < 1 || major > 3)
    return createStringError(file +
                             "expected version 1, 2 or 3 of the .npy "
                             "format, but got " +
                             Twine(major));
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + lengthBytes)
    return truncated("magic, version and header length", 8 + lengthBytes,
                     bytes.size());
  uint64_t length = major == 1
                        ? llvm::support::endian::read16le(bytes.data() + 8)
                        : llvm::support::endian::read32le(bytes.data() + 8);
  StringRef rest = bytes.drop_front(8 + lengthBytes);
  if (rest.size() < length)
    return truncated("header", length, rest.size());
  Header header;
  std::string problem = HeaderParser(rest.take_front(length)).parse(header);
  if (!problem.empty())
    return createStringError("'" + name + "': malformed header: " + problem);
  rest = rest.drop_front(length);
  Expected<DType> type = parseDescr(header.descr, name);
  if (!type)
    return type.takeError();

  constexpr size_t kMaxRank = 8;
  if (header.shape.size() > kMaxRank)
    return createStringError("'" + name +
                             "': expected at most 8 dimensions, but got " +
                             Twine(header.shape.size()));
  // Sizes beside a 0 must not overflow either.
  uint64_t bound = 1;
  constexpr uint64_t kMaxElements = uint64_t(1) << 48;
  for (int64_t size : header.shape) {
    uint64_t factor = std::max<int64_t>(size, 1);
    if (factor > kMaxElements / bound)
      return createStringError("'" + name +
                               "': the shape has more than 2^48 elements");
    bound *= factor;
  }
  uint64_t count = llvm::is_contained(header.shape, 0) ? 0 : bound;
  uint64_t wanted = count * getByteSize(*type);
  if (rest.size() < wanted)
    return truncated("elements", wanted, rest.size());
  if (rest.size() > wanted)
    return createStringError("'" + name + "': expected " + Twine(wanted) +
                             " bytes of elements, but got " +
                             Twine(rest.size()));
  HostTensor tensor(*type, header.shape);
  if (count == 0)
    return tensor;
  if (header.fortranOrder && tensor.getRank() > 1)
    copyFromFortranOrder(tensor, rest.data());
  else
    std::memcpy(tensor.getData(), rest.data(), wanted);
  return tensor;
}

Expected<HostTensor> fi::readNpy(StringRef path) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  return parseNpy((*buffer)->getBuffer(), path);
}

static StringRef getDescr(DType type) {
  switch (type) {
  case DType::F32:
    return "<f4";
  case DType::F16:
    return "<f2";
  case DType::BF16:
    return "<V2";
  case DType::F64:
    return "<f8";
  case DType::I32:
    return "<i4";
  case DType::I64:
    return "<i8";
  case DType::I8:
    return "|i1";
  case DType::I1:
    return "|b1";
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E8M0FNU:
    return "|u1";
  }
  return "";
}

std::string fi::formatNpy(const HostTensor &tensor) {
  std::string header = "{'descr': '" + getDescr(tensor.getType()).str() +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.getShape())
    header += std::to_string(size) + ", ";
  if (tensor.getRank() > 1)
    header.resize(header.size() - 2);
  header += "), }";
  // The elements begin at a multiple of 64 bytes.
  size_t unpadded = 10 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';

  std::string out = kMagic.str();
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  int64_t bytes = getByteSize(tensor.getType());
  int64_t count = tensor.getNumElements();
  if (tensor.isContiguous()) {
    out.append(static_cast<const char *>(tensor.getData()), count * bytes);
    return out;
  }
  llvm::SmallVector<int64_t, 4> index(tensor.getRank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    out.append(static_cast<const char *>(tensor.at(index)), bytes);
    for (int64_t d = tensor.getRank(); d-- > 0;) {
      if (++index[d] < tensor.getSize(d))
        break;
      index[d] = 0;
    }
  }
  return out;
}

Error fi::writeNpy(StringRef path, const HostTensor &tensor) {
  return writeFile(
      path, [&](llvm::raw_ostream &stream) { stream << formatNpy(tensor); });
}
