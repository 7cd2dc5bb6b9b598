//===- Npz.cpp - archives of NumPy's array files --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .npz file is a zip archive (APPNOTE 6.3): members, each behind a local
// header, a central directory, and its end record, found from the end of the
// file. Members are stored (method 0) or deflated (method 8). Sizes may be in
// zip64 fields.
//
//===----------------------------------------------------------------------===//

#include "fi/Support/File.h"
#include "fi/Support/Npy.h"
#include "llvm/Support/Endian.h"
#include <zlib.h>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::read64le;

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50,
                   kEndRecord = 0x06054b50, kEndRecord64 = 0x06064b50,
                   kEndLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22,
                 kEndSize64 = 56, kLocatorSize64 = 20;

struct Member {
  std::string name;
  unsigned flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t compressed = 0, size = 0, offset = 0;
};

class ZipReader {
public:
  ZipReader(StringRef bytes, StringRef name) : bytes(bytes), name(name) {}

  Expected<std::vector<Member>> readDirectory();
  Expected<std::string> readMember(const Member &member);

private:
  Error malformed(const Twine &what) {
    return createStringError("'" + name + "': malformed zip archive: " + what);
  }
  /// `size` bytes at `offset`; null if the file does not have them.
  const char *at(uint64_t offset, uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset)
      return nullptr;
    return bytes.data() + offset;
  }

  StringRef bytes, name;
};

} // namespace

/// Takes the 64-bit values of a central header's zip64 field, which are there
/// for those of the 32-bit fields that are all ones.
static bool readZip64Field(StringRef extra, Member &member) {
  while (extra.size() >= 4) {
    unsigned id = read16le(extra.data()), size = read16le(extra.data() + 2);
    extra = extra.drop_front(4);
    if (size > extra.size())
      return false;
    StringRef field = extra.take_front(size);
    extra = extra.drop_front(size);
    if (id != 1)
      continue;
    for (uint64_t *value : {&member.size, &member.compressed, &member.offset}) {
      if (*value != 0xffffffff)
        continue;
      if (field.size() < 8)
        return false;
      *value = read64le(field.data());
      field = field.drop_front(8);
    }
  }
  return true;
}

Expected<std::vector<Member>> ZipReader::readDirectory() {
  // The end record is last but for a comment of up to 65535 bytes.
  if (bytes.size() < kEndSize)
    return malformed("it is shorter than an end record");
  const char *end = nullptr;
  uint64_t endOffset = 0;
  for (uint64_t back = 0; back <= 65535 && back + kEndSize <= bytes.size();
       ++back) {
    endOffset = bytes.size() - kEndSize - back;
    if (read32le(bytes.data() + endOffset) == kEndRecord) {
      end = bytes.data() + endOffset;
      break;
    }
  }
  if (!end)
    return malformed("expected an end record; the file may be truncated");
  uint64_t count = read16le(end + 10), offset = read32le(end + 16);
  if (endOffset >= kLocatorSize64 &&
      read32le(end - kLocatorSize64) == kEndLocator64) {
    const char *end64 = at(read64le(end - kLocatorSize64 + 8), kEndSize64);
    if (!end64 || read32le(end64) != kEndRecord64)
      return malformed("expected a zip64 end record where its locator points");
    count = read64le(end64 + 32);
    offset = read64le(end64 + 48);
  }

  std::vector<Member> members;
  for (uint64_t i = 0; i < count; ++i) {
    const char *header = at(offset, kCentralSize);
    if (!header || read32le(header) != kCentralHeader)
      return malformed("expected " + Twine(count) +
                       " entries in its directory, but entry " + Twine(i) +
                       " is not there");
    unsigned nameSize = read16le(header + 28),
             extraSize = read16le(header + 30),
             commentSize = read16le(header + 32);
    const char *text = at(offset + kCentralSize, nameSize + extraSize);
    if (!text)
      return malformed("entry " + Twine(i) + " is truncated");
    Member member;
    member.name = std::string(text, nameSize);
    member.flags = read16le(header + 8);
    member.method = read16le(header + 10);
    member.crc = read32le(header + 16);
    member.compressed = read32le(header + 20);
    member.size = read32le(header + 24);
    member.offset = read32le(header + 42);
    if (!readZip64Field(StringRef(text + nameSize, extraSize), member))
      return malformed("the zip64 field of entry " + Twine(i) +
                       " is truncated");
    members.push_back(std::move(member));
    offset += kCentralSize + nameSize + extraSize + commentSize;
  }
  return members;
}

/// Inflates a raw deflate stream into exactly `size` bytes.
static bool inflateAll(StringRef from, uint64_t size, std::string &out) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  out.resize(size);
  uint64_t taken = 0, made = 0;
  int status = Z_OK;
  // zlib counts in 32 bits.
  constexpr uint64_t kStep = uint64_t(1) << 30;
  while (status == Z_OK) {
    uInt in = std::min(kStep, from.size() - taken);
    uInt room = std::min(kStep, size - made);
    char none;
    stream.next_in =
        reinterpret_cast<Bytef *>(const_cast<char *>(from.data() + taken));
    stream.avail_in = in;
    stream.next_out = reinterpret_cast<Bytef *>(room ? &out[made] : &none);
    stream.avail_out = room;
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += room - stream.avail_out;
    if (status == Z_OK && in == stream.avail_in && room == stream.avail_out)
      break;
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END && made == size;
}

Expected<std::string> ZipReader::readMember(const Member &member) {
  auto refused = [&](const Twine &what) {
    return createStringError("'" + name + "': member '" + member.name +
                             "': " + what);
  };
  if (member.flags & 1)
    return refused("it is encrypted, which is not supported");
  const char *local = at(member.offset, kLocalSize);
  if (!local || read32le(local) != kLocalHeader)
    return refused("expected a local header where the directory points");
  uint64_t start =
      member.offset + kLocalSize + read16le(local + 26) + read16le(local + 28);
  const char *data = at(start, member.compressed);
  if (!data)
    return refused("expected " + Twine(member.compressed) +
                   " bytes, but the file ends before");
  std::string out;
  if (member.method == 0) {
    if (member.size != member.compressed)
      return refused("it is stored, but its sizes differ");
    out.assign(data, member.size);
  } else if (member.method == 8) {
    // Deflate expands 1032 times at most: a larger size is a lie, and must not
    // become an allocation.
    if (member.size / 1032 > member.compressed + 1)
      return refused("its size cannot come from so few bytes");
    if (!inflateAll(StringRef(data, member.compressed), member.size, out))
      return refused("its deflated bytes are damaged");
  } else {
    return refused("compression method " + Twine(member.method) +
                   " is not supported; allowed are stored and deflated");
  }
  uLong crc =
      crc32_z(0, reinterpret_cast<const Bytef *>(out.data()), out.size());
  if (crc != member.crc)
    return refused("its checksum does not match");
  return out;
}

Expected<std::vector<NamedTensor>> fi::parseNpz(StringRef bytes,
                                                StringRef name) {
  ZipReader reader(bytes, name);
  auto members = reader.readDirectory();
  if (!members)
    return members.takeError();
  std::vector<NamedTensor> tensors;
  for (const Member &member : *members) {
    StringRef stem = member.name;
    if (!stem.consume_back(".npy"))
      return createStringError("'" + name +
                               "': expected members named *.npy, but got '" +
                               member.name + "'");
    auto content = reader.readMember(member);
    if (!content)
      return content.takeError();
    auto tensor = parseNpy(*content, (name + ":" + member.name).str());
    if (!tensor)
      return tensor.takeError();
    stem.consume_back(".bf16");
    tensors.push_back({stem.str(), std::move(*tensor)});
  }
  return tensors;
}

Expected<std::vector<NamedTensor>> fi::readNpz(StringRef path) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  return parseNpz((*buffer)->getBuffer(), path);
}

Error fi::writeNpz(StringRef path, llvm::ArrayRef<NamedTensor> tensors) {
  std::vector<std::string> contents;
  uint64_t total = 0;
  for (const NamedTensor &tensor : tensors) {
    contents.push_back(formatNpy(tensor.tensor));
    total += contents.back().size() + kLocalSize + kCentralSize +
             2 * (tensor.name.size() + 4);
  }
  if (total + kEndSize > 0xfffffffe || tensors.size() > 0xfffe)
    return createStringError("cannot write '" + path +
                             "': the archive would exceed 4 GiB or 65534 "
                             "arrays; save fewer tensors");
  return writeFile(path, [&](llvm::raw_ostream &stream) {
    auto put16 = [](std::string &out, unsigned value) {
      out += static_cast<char>(value & 0xff);
      out += static_cast<char>(value >> 8 & 0xff);
    };
    auto put32 = [&](std::string &out, uint32_t value) {
      put16(out, value & 0xffff);
      put16(out, value >> 16);
    };
    std::string directory;
    uint32_t offset = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string &content = contents[i];
      std::string member = tensors[i].name + ".npy";
      // Version 2.0, no flags, stored, 1980-01-01 00:00: the same bytes every
      // time.
      std::string common;
      put16(common, 20);
      put16(common, 0);
      put16(common, 0);
      put16(common, 0);
      put16(common, 0x21);
      put32(common, crc32_z(0, reinterpret_cast<const Bytef *>(content.data()),
                            content.size()));
      put32(common, content.size());
      put32(common, content.size());
      put16(common, member.size());
      put16(common, 0);

      std::string local;
      put32(local, kLocalHeader);
      local += common + member;

      put32(directory, kCentralHeader);
      put16(directory, 20);
      directory += common;
      put16(directory, 0);
      put16(directory, 0);
      put16(directory, 0);
      put32(directory, 0);
      put32(directory, offset);
      directory += member;

      stream << local << content;
      offset += local.size() + content.size();
    }
    std::string end;
    put32(end, kEndRecord);
    put16(end, 0);
    put16(end, 0);
    put16(end, tensors.size());
    put16(end, tensors.size());
    put32(end, directory.size());
    put32(end, offset);
    put16(end, 0);
    stream << directory << end;
  });
}
