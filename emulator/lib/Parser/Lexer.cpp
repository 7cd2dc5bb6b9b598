//===- Lexer.cpp - The words of PTX ---------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lexer.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace fi::emulator {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%';
}
bool isPart(char c) { return isStart(c) || isDigit(c); }

int hexDigit(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return 99;
}

} // namespace

void Lexer::skipSpace() {
  while (pos < text.size()) {
    char c = text[pos];
    if (c == '\n') {
      ++line;
      ++pos;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++pos;
    } else if (c == '/' && pos + 1 < text.size() && text[pos + 1] == '/') {
      while (pos < text.size() && text[pos] != '\n')
        ++pos;
    } else if (c == '/' && pos + 1 < text.size() && text[pos + 1] == '*') {
      pos += 2;
      while (pos < text.size() && !(text[pos] == '*' && pos + 1 < text.size() &&
                                    text[pos + 1] == '/')) {
        if (text[pos] == '\n')
          ++line;
        ++pos;
      }
      pos = pos + 2 < text.size() ? pos + 2 : text.size();
    } else {
      return;
    }
  }
}

void Lexer::number() {
  size_t start = pos;
  auto at = [&](size_t i) { return i < text.size() ? text[i] : '\0'; };
  current.kind = Token::Int;
  uint64_t value = 0;
  if (at(pos) == '0' && (at(pos + 1) == 'f' || at(pos + 1) == 'F' ||
                         at(pos + 1) == 'd' || at(pos + 1) == 'D')) {
    bool single = at(pos + 1) == 'f' || at(pos + 1) == 'F';
    size_t digits = single ? 8 : 16;
    pos += 2;
    size_t n = 0;
    while (n < digits && hexDigit(at(pos)) < 16) {
      value = value << 4 | uint64_t(hexDigit(at(pos)));
      ++pos;
      ++n;
    }
    current.kind = n != digits ? Token::Bad
                   : single    ? Token::Float32
                               : Token::Float64;
  } else {
    unsigned base = 10;
    if (at(pos) == '0') {
      char c = at(pos + 1);
      if (c == 'x' || c == 'X') {
        base = 16;
        pos += 2;
      } else if (c == 'b' || c == 'B') {
        base = 2;
        pos += 2;
      } else if (isDigit(c)) {
        base = 8;
        pos += 1;
      }
    }
    size_t digits = pos;
    while (hexDigit(at(pos)) < int(base)) {
      value = value * base + uint64_t(hexDigit(at(pos)));
      ++pos;
    }
    if (pos == digits)
      current.kind = Token::Bad;
    if (base == 10 && (at(pos) == '.' || at(pos) == 'e' || at(pos) == 'E') &&
        (isDigit(at(pos + 1)) || at(pos + 1) == '-' || at(pos + 1) == '+')) {
      ++pos;
      while (isDigit(at(pos)) || at(pos) == 'e' || at(pos) == 'E' ||
             ((at(pos) == '-' || at(pos) == '+') &&
              (at(pos - 1) == 'e' || at(pos - 1) == 'E')))
        ++pos;
      std::string copy(text.substr(start, pos - start));
      double d = std::strtod(copy.c_str(), nullptr);
      std::memcpy(&value, &d, 8);
      current.kind = Token::Float64;
    } else if (at(pos) == 'U') {
      ++pos;
    }
  }
  if (isPart(at(pos))) {
    while (isPart(at(pos)))
      ++pos;
    current.kind = Token::Bad;
  }
  current.value = value;
  current.text = text.substr(start, pos - start);
}

void Lexer::next() {
  skipSpace();
  current = Token();
  current.line = line;
  if (pos >= text.size())
    return;
  size_t start = pos;
  char c = text[pos];
  if (isStart(c)) {
    ++pos;
    while (pos < text.size() && isPart(text[pos]))
      ++pos;
    current.kind = Token::Ident;
    current.text = text.substr(start, pos - start);
  } else if (c == '.' && pos + 1 < text.size() && isPart(text[pos + 1])) {
    ++pos;
    while (pos < text.size() && isPart(text[pos]))
      ++pos;
    current.kind = Token::Directive;
    current.text = text.substr(start + 1, pos - start - 1);
  } else if (isDigit(c)) {
    number();
  } else if (c == '"') {
    ++pos;
    while (pos < text.size() && text[pos] != '"' && text[pos] != '\n')
      ++pos;
    bool closed = pos < text.size() && text[pos] == '"';
    current.kind = closed ? Token::String : Token::Bad;
    current.text = text.substr(start + 1, pos - start - 1);
    if (closed)
      ++pos;
  } else {
    current.kind = Token::Punct;
    current.text = text.substr(start, 1);
    ++pos;
  }
}

void Lexer::extendToOpcode() {
  size_t start = size_t(current.text.data() - text.data());
  pos = start + current.text.size();
  while (pos < text.size()) {
    if (isPart(text[pos]) || text[pos] == '.')
      ++pos;
    else if (text[pos] == ':' && pos + 1 < text.size() && text[pos + 1] == ':')
      pos += 2;
    else
      break;
  }
  current.text = text.substr(start, pos - start);
}

void Lexer::skipBraces() {
  unsigned depth = 0;
  while (current.kind != Token::End) {
    if (current.is('{'))
      ++depth;
    if (current.is('}') && --depth == 0) {
      next();
      return;
    }
    next();
  }
}

} // namespace fi::emulator
