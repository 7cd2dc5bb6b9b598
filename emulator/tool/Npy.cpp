//===- Npy.cpp - NumPy's array files, without LLVM ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Npy.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace fi::emulator {

uint64_t elementBytes(const std::string &descr) {
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '|'))
    return 0;
  if (!std::strchr("fiubV", descr[1]))
    return 0;
  int n = std::atoi(descr.c_str() + 2);
  return n == 1 || n == 2 || n == 4 || n == 8 ? uint64_t(n) : 0;
}

std::string descrOf(const std::string &type) {
  static const char *const table[][2] = {
      {"f32", "<f4"},  {"f16", "<f2"}, {"f64", "<f8"}, {"bf16", "<V2"},
      {"i8", "|i1"},   {"u8", "|u1"},  {"i16", "<i2"}, {"u16", "<u2"},
      {"i32", "<i4"},  {"u32", "<u4"}, {"i64", "<i8"}, {"u64", "<u8"},
      {"e4m3", "|u1"}, {"e5m2", "|u1"}};
  for (auto &[name, descr] : table)
    if (type == name)
      return descr;
  return {};
}

bool readNpy(const std::string &path, NpyArray &array, std::string &error) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    error = path + ": cannot be opened";
    return false;
  }
  std::string all((std::istreambuf_iterator<char>(in)),
                  std::istreambuf_iterator<char>());
  auto bad = [&](const char *what) {
    error = path + ": not a .npy file that is understood: " + what;
    return false;
  };
  if (all.size() < 12 || all.compare(0, 6, "\x93NUMPY") != 0)
    return bad("no magic");
  size_t length, start;
  auto byte = [&](size_t i) { return size_t(uint8_t(all[i])); };
  if (all[6] == 1) {
    length = byte(8) | byte(9) << 8;
    start = 10;
  } else {
    length = byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
    start = 12;
  }
  if (length > all.size() - start)
    return bad("the header is cut off");
  std::string header = all.substr(start, length);
  auto value = [&](const char *key) -> size_t {
    size_t at = header.find(std::string("'") + key + "'");
    at = at == std::string::npos ? at : header.find(':', at);
    return at == std::string::npos ? at : header.find_first_not_of(" ", at + 1);
  };
  size_t d = value("descr"), f = value("fortran_order"), s = value("shape");
  if (d == std::string::npos || f == std::string::npos ||
      s == std::string::npos || header[d] != '\'' || header[s] != '(')
    return bad("the header lacks descr, fortran_order or shape");
  size_t quote = header.find('\'', d + 1);
  if (quote == std::string::npos)
    return bad("descr");
  array.descr = header.substr(d + 1, quote - d - 1);
  uint64_t size = elementBytes(array.descr);
  if (!size)
    return bad(("the type " + array.descr).c_str());
  if (header.compare(f, 4, "True") == 0)
    return bad("Fortran order");
  array.shape.clear();
  uint64_t count = 1;
  for (size_t i = s + 1; i < header.size() && header[i] != ')';) {
    if (header[i] >= '0' && header[i] <= '9') {
      char *end;
      uint64_t n = std::strtoull(header.c_str() + i, &end, 10);
      i = size_t(end - header.c_str());
      if (n && count > (uint64_t(1) << 40) / n)
        return bad("the shape is too large");
      count *= n;
      array.shape.push_back(n);
    } else {
      ++i;
    }
  }
  if (all.size() - start - length != count * size)
    return bad("the data's size does not fit the shape");
  array.bytes.assign(all.begin() + long(start + length), all.end());
  return true;
}

bool writeNpy(const std::string &path, const NpyArray &array,
              std::string &error) {
  std::string shape;
  for (uint64_t n : array.shape)
    shape += std::to_string(n) + ", ";
  if (array.shape.size() > 1)
    shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + array.descr +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64)
    header += ' ';
  header += '\n';
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const char head[10] = {'\x93',
                         'N',
                         'U',
                         'M',
                         'P',
                         'Y',
                         1,
                         0,
                         char(header.size() & 255),
                         char(header.size() >> 8)};
  out.write(head, sizeof(head));
  out.write(header.data(), long(header.size()));
  out.write(reinterpret_cast<const char *>(array.bytes.data()),
            long(array.bytes.size()));
  out.close();
  if (!out) {
    error = path + ": cannot be written";
    return false;
  }
  return true;
}

} // namespace fi::emulator
