//===- Report.cpp - what fi-run prints about results ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "fi/Execution/Inputs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <limits>

using namespace fi;
using llvm::format;

void fi::printSummary(llvm::raw_ostream &out, const Signature &signature,
                      const BackendRun &run) {
  for (auto [info, tensor] : llvm::zip(signature.results, run.results)) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    int64_t nans = 0, infinities = 0;
    auto *data = static_cast<const char *>(tensor.getData());
    int64_t bytes = getByteSize(tensor.getType());
    for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i) {
      double value = readFloat(data + i * bytes, tensor.getType());
      if (std::isnan(value)) {
        ++nans;
      } else if (std::isinf(value)) {
        ++infinities;
      } else {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    out << info.name << ": " << fi::getName(tensor.getType()) << ' '
        << formatShape(tensor.getShape());
    if (low <= high)
      out << format(", %.6g to %.6g", low, high);
    if (infinities)
      out << ", " << infinities << " infinite";
    if (nans)
      out << ", " << nans << " NaN";
    out << '\n';
  }
}

bool fi::printComparisons(llvm::raw_ostream &out, llvm::StringRef backend,
                          llvm::ArrayRef<Comparison> comparisons) {
  out << "compared with " << backend << ":\n";
  bool passed = true;
  int64_t elements = 0, failed = 0;
  for (const Comparison &c : comparisons) {
    elements += c.compared;
    failed += c.failed;
    passed &= c.passed();
    out << "  " << c.name << ": largest error "
        << format("%.3g, allowed %.3g", c.maxError, c.tolerance);
    if (c.compared > 0)
      out << ", worst at " << formatShape(c.worst)
          << format(": got %.9g, expected %.9g", c.got, c.expected);
    if (!c.passed())
      out << "; " << c.failed << " of " << c.compared << " differ by more";
    out << '\n';
  }
  if (passed)
    out << "PASS: " << elements << " elements agree\n";
  else
    out << "FAIL: " << failed << " of " << elements << " elements differ\n";
  return passed;
}

namespace {

/// The position of a row, as its tables or the usual rule say.
int64_t positionOf(const AttentionInfo &attention, const BackendRun &run,
                   size_t request, const RequestLengths &lengths, int64_t row,
                   int64_t index) {
  auto read = [&](int argument, int64_t i) -> int64_t {
    const HostTensor &tensor = run.arguments[argument].getTensor();
    return i < tensor.getSize(0) ? tensor.getInteger({i}) : 0;
  };
  if (attention.positions >= 0)
    return read(attention.positions, row);
  int64_t origin =
      attention.view.origin >= 0 ? read(attention.view.origin, request) : 0;
  return origin + lengths.keyLength - lengths.queryLength + index;
}

class AttentionPrinter {
public:
  AttentionPrinter(llvm::raw_ostream &out, const AttentionInfo &attention,
                   size_t number, const BackendRun &run,
                   const BackendRun *other)
      : out(out), attention(attention), number(number), run(run), other(other) {
  }

  void print() {
    std::vector<int64_t> offsets = getRowOffsets(attention, run.arguments);
    std::vector<RequestLengths> lengths =
        getRequestLengths(attention, run.arguments);
    printHead();
    int64_t rows = 0;
    if (attention.output >= 0)
      rows = run.results[attention.output].getSize(0);
    for (size_t r = 0; r < lengths.size(); ++r)
      printRequest(r, offsets[r], lengths[r], rows);
    int64_t end = offsets.empty() ? 0 : offsets.back();
    if (end < rows)
      out << "  rows " << end << " to " << rows - 1
          << " belong to no request\n";
  }

private:
  void printHead() {
    out << "    row  position  visible";
    if (other)
      out << llvm::right_justify(other->backend, 11);
    if (attention.lse >= 0) {
      out << llvm::right_justify("lse", 12);
      if (other)
        out << llvm::right_justify(other->backend, 12);
    }
    if (attention.output >= 0) {
      out << "   output of head 0";
      if (other)
        out << ", " << other->backend << " below";
    }
    out << '\n';
  }

  void printCount(const BackendRun &from, int64_t row, int width) {
    std::string text = "-";
    if (number < from.visibleKeys.size()) {
      const HostTensor &counts = from.visibleKeys[number];
      if (row < counts.getSize(0) && counts.getInteger({row, 0}) >= 0)
        text = std::to_string(counts.getInteger({row, 0}));
    }
    out << llvm::right_justify(text, width);
  }

  void printOutput(const BackendRun &from, int64_t row) {
    const HostTensor &output = from.results[attention.output];
    int64_t shown = std::min<int64_t>(output.getSize(2), 5);
    out << "  ";
    for (int64_t d = 0; d < shown; ++d)
      out << format(" %9.6f", output.getFloat({row, 0, d}));
    if (shown < output.getSize(2))
      out << " ...";
  }

  void printRequest(size_t request, int64_t begin,
                    const RequestLengths &lengths, int64_t rows) {
    out << "  R" << request << ": " << lengths.queryLength
        << (lengths.queryLength == 1 ? " row, " : " rows, ")
        << lengths.keyLength << (lengths.keyLength == 1 ? " key\n" : " keys\n");
    constexpr int64_t kMost = 16;
    for (int64_t i = 0; i < lengths.queryLength; ++i) {
      if (lengths.queryLength > kMost && i == kMost / 2) {
        out << "    ... " << lengths.queryLength - kMost << " rows more\n";
        i = lengths.queryLength - kMost / 2;
      }
      int64_t row = begin + i;
      if (row < 0 || row >= rows)
        continue;
      out << llvm::right_justify(std::to_string(row), 7)
          << llvm::right_justify(std::to_string(positionOf(
                                     attention, run, request, lengths, row, i)),
                                 10);
      printCount(run, row, 9);
      if (other)
        printCount(*other, row, 11);
      if (attention.lse >= 0) {
        out << format("%12.6f", run.results[attention.lse].getFloat({row, 0}));
        if (other)
          out << format("%12.6f",
                        other->results[attention.lse].getFloat({row, 0}));
      }
      if (attention.output >= 0) {
        size_t indent = 26 + (other ? 11 : 0);
        if (attention.lse >= 0)
          indent += other ? 24 : 12;
        printOutput(run, row);
        if (other) {
          out << '\n';
          out.indent(indent);
          printOutput(*other, row);
        }
      }
      out << '\n';
    }
  }

  llvm::raw_ostream &out;
  const AttentionInfo &attention;
  size_t number;
  const BackendRun &run;
  const BackendRun *other;
};

} // namespace

void fi::printAttentions(llvm::raw_ostream &out, const Signature &signature,
                         const BackendRun &run, const BackendRun *other) {
  for (size_t i = 0; i < signature.attentions.size(); ++i) {
    const AttentionInfo &attention = signature.attentions[i];
    out << "attention " << i << " on " << run.backend;
    if (other)
      out << ", beside " << other->backend;
    out << '\n';
    if (attention.output < 0 && attention.lse < 0)
      out << "  its output is no result of the program\n";
    AttentionPrinter(out, attention, i, run, other).print();
  }
}
