//===- Svg.h - what the pictures have in common ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_SUPPORT_SVG_H
#define FI_LIB_SUPPORT_SVG_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

namespace fi::svg {

inline std::string escape(llvm::StringRef text) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::printHTMLEscaped(text, stream);
  return out;
}

/// The begin of a picture, and how its texts look; `style` has more of that.
inline void begin(llvm::raw_ostream &out, double width, double height,
                  llvm::StringRef style = "") {
  out << llvm::format("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "width=\"%.0f\" height=\"%.0f\" "
                      "viewBox=\"0 0 %.0f %.0f\">\n",
                      width, height, width, height)
      << "<style>text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;"
         "fill:#1f2937}.title{font-size:17px;font-weight:bold}"
         ".axis,.lane{font-size:11px;fill:#4b5563}"
      << style << "</style>\n"
      << llvm::format("<rect width=\"%.0f\" height=\"%.0f\" fill=\"white\"/>\n",
                      width, height);
}

/// Lines from `top` to `bottom` with their numbers below, in steps of 1, 2 or 5
/// times a power of ten, about eight of them up to `total`.
inline void drawTicks(llvm::raw_ostream &out, double total, double top,
                      double bottom, llvm::function_ref<double(double)> x) {
  double rough = total / 8,
         power = std::pow(10, std::floor(std::log10(rough > 0 ? rough : 1)));
  double step = power;
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (power * factor >= rough) {
      step = power * factor;
      break;
    }
  for (int64_t number = 0; double(number) * step <= total * 1.0001 && total > 0;
       ++number) {
    double tick = double(number) * step;
    out << llvm::format("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
                        "stroke=\"#d1d5db\" stroke-width=\"0.8\"/>",
                        x(tick), top, x(tick), bottom)
        << llvm::format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\" "
                        "text-anchor=\"middle\">%.10g</text>\n",
                        x(tick), bottom + 14, tick);
  }
}

} // namespace fi::svg

#endif // FI_LIB_SUPPORT_SVG_H
