//===- Trace.cpp - reading traces of serving requests ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Trace.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <optional>

using namespace llvm;

namespace fi::replay {
namespace {

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// Days since 1970-01-01 of a date of the Gregorian calendar. Years begin in
/// March here, so that the leap day is a year's last.
int64_t countDays(int64_t year, int64_t month, int64_t day) {
  int64_t y = month > 2 ? year : year - 1;
  int64_t fromMarch = (month + 9) % 12;
  return 365 * y + y / 4 - y / 100 + y / 400 + (153 * fromMarch + 2) / 5 + day -
         1 - 719468;
}

/// Seconds of `2023-11-16 18:15:46.6805900` (or with a T), or of a plain
/// number.
std::optional<double> parseTime(StringRef text) {
  double seconds;
  if (!text.getAsDouble(seconds))
    return std::isfinite(seconds) ? std::optional<double>(seconds)
                                  : std::nullopt;
  auto [date, clock] = text.split(text.contains('T') ? 'T' : ' ');
  SmallVector<StringRef, 3> days, parts;
  date.split(days, '-');
  clock.split(parts, ':');
  unsigned year, month, day, hour, minute;
  if (days.size() != 3 || parts.size() != 3 || days[0].getAsInteger(10, year) ||
      days[1].getAsInteger(10, month) || days[2].getAsInteger(10, day) ||
      parts[0].getAsInteger(10, hour) || parts[1].getAsInteger(10, minute) ||
      parts[2].getAsDouble(seconds))
    return std::nullopt;
  if (year > 9999 || month < 1 || month > 12 || day < 1 || day > 31 ||
      hour > 23 || minute > 59 || !(seconds >= 0 && seconds < 61))
    return std::nullopt;
  return 86400.0 * countDays(year, month, day) + 3600.0 * hour + 60.0 * minute +
         seconds;
}

struct Columns {
  int time = -1, prompt = -1, generated = -1;
  size_t count = 0;
};

Expected<Columns> parseHeader(StringRef line, StringRef name) {
  SmallVector<StringRef, 4> titles;
  line.split(titles, ',');
  Columns columns;
  columns.count = titles.size();
  for (auto [i, title] : enumerate(titles)) {
    title = title.trim();
    int *column = title.equals_insensitive("TIMESTAMP")       ? &columns.time
                  : title.equals_insensitive("ContextTokens") ? &columns.prompt
                  : title.equals_insensitive("GeneratedTokens")
                      ? &columns.generated
                      : nullptr;
    if (!column)
      continue;
    if (*column >= 0)
      return makeError(name + ":1: column '" + title + "' appears twice");
    *column = i;
  }
  if (columns.time < 0 || columns.prompt < 0 || columns.generated < 0)
    return makeError(name +
                     ":1: expected the columns TIMESTAMP, ContextTokens and "
                     "GeneratedTokens, but got '" +
                     line.take_front(80) + "'");
  return columns;
}

} // namespace

Expected<std::vector<TraceRequest>> parseTrace(StringRef text, StringRef name) {
  std::vector<TraceRequest> requests;
  std::optional<Columns> columns;
  double first = 0, previous = 0;
  for (unsigned number = 1; !text.empty(); ++number) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.trim();
    if (line.empty())
      continue;
    if (!columns) {
      if (number == 1)
        line.consume_front("\xef\xbb\xbf");
      Expected<Columns> header = parseHeader(line, name);
      if (!header)
        return header.takeError();
      columns = *header;
      continue;
    }

    std::string at = (name + ":" + Twine(number) + ": ").str();
    SmallVector<StringRef, 4> cells;
    line.split(cells, ',');
    if (cells.size() != columns->count)
      return makeError(at + "expected " + Twine(columns->count) +
                       " columns as in the header, but got " +
                       Twine(cells.size()));
    TraceRequest request;
    auto parseTokens = [&](int column, StringRef what, int64_t least,
                           int64_t &tokens) -> Error {
      StringRef cell = cells[column].trim();
      if (!cell.getAsInteger(10, tokens) && tokens >= least &&
          tokens <= kMaxTraceTokens)
        return Error::success();
      return makeError(at + "expected " + what + " to be an integer in " +
                       Twine(least) + " ... " + Twine(kMaxTraceTokens) +
                       ", but got '" + cell.take_front(40) + "'");
    };
    if (Error error = parseTokens(columns->prompt, "ContextTokens", 1,
                                  request.promptTokens))
      return std::move(error);
    if (Error error = parseTokens(columns->generated, "GeneratedTokens", 0,
                                  request.generatedTokens))
      return std::move(error);
    StringRef stamp = cells[columns->time].trim();
    std::optional<double> time = parseTime(stamp);
    if (!time)
      return makeError(at +
                       "expected TIMESTAMP to be seconds or 'YYYY-MM-DD "
                       "HH:MM:SS.fraction', but got '" +
                       stamp.take_front(40) + "'");
    if (requests.empty())
      first = previous = *time;
    if (*time < previous)
      return makeError(at + "expected time stamps that do not fall, but got '" +
                       stamp.take_front(40) + "' after a later one");
    previous = *time;
    request.arrival = *time - first;
    requests.push_back(request);
  }
  if (requests.empty())
    return makeError(name +
                     ": expected a header line and at least one request, "
                     "but got " +
                     (columns ? "the header alone" : "an empty file"));
  return requests;
}

Expected<std::vector<TraceRequest>> readTrace(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return makeError("cannot read the trace '" + path +
                     "': " + buffer.getError().message());
  return parseTrace((*buffer)->getBuffer(), path);
}

} // namespace fi::replay
