//===- fi-bench.cpp - measures what fi reaches on this machine ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"
#include "ToolMain.h"
#include "fi/Support/File.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fi;
using namespace fi::bench;

namespace {

cl::OptionCategory category("fi-bench options");
cl::opt<bool> list("list", cl::desc("print the rows' names, and stop"),
                   cl::cat(category));
cl::opt<std::string> filter("filter",
                            cl::desc("measure rows whose name matches"),
                            cl::value_desc("regex"), cl::cat(category));
cl::opt<double> seconds("seconds", cl::desc("time for each row (2)"),
                        cl::value_desc("s"), cl::init(2), cl::cat(category));
cl::opt<std::string> jsonFile("json", cl::desc("write the figures as JSON"),
                              cl::value_desc("file"), cl::cat(category));
cl::opt<std::string>
    served("serve",
           cl::desc("run one row at the commands of another program: run N, "
                    "save DIR, quit, a line each on standard input"),
           cl::value_desc("row"), cl::cat(category));

const char *overview = R"(measures what fi reaches on this machine

A row is measured in turns with what it is compared with (the arithmetic peak, a
loop that reads the same memory, another shape), and the medians are given: on a
machine that drifts, trust the ratios. Results are checked before time is taken.

Examples:
  fi-bench --list
  fi-bench --filter=decode --json=decode.json
  fi-bench --filter='prefill-f32-1k-causal-[12]t' --seconds=5
)";

/// The second contender's ratio decides for rates, the value for times.
bool meetsGoal(const Row &row, const Measurement &m) {
  if (isRate(row.unit))
    return m.values.size() > 1 && m.getRatio(1) >= row.goal;
  return m.values[0] <= row.goal;
}

void print(const Row &row, const Measurement &m) {
  outs() << formatv("{0,-40} {1,9:f1} {2,-8}", row.name, m.values[0],
                    getName(row.unit));
  for (size_t i = 1; i < m.values.size(); ++i)
    outs() << formatv(" {0:f2} of {1} ({2:f1})", m.getRatio(i), m.names[i],
                      m.values[i]);
  if (row.goal > 0)
    outs() << (isRate(row.unit) ? formatv("; to reach: {0:f2}", row.goal).str()
                                : formatv("to reach: {0:f0} {1}", row.goal,
                                          getName(row.unit))
                                      .str())
           << (meetsGoal(row, m) ? ", met" : ", MISSED");
  outs() << "\n";
  outs().flush();
}

json::Object toJSON(const Row &row, const Measurement &m) {
  json::Array others;
  for (size_t i = 1; i < m.values.size(); ++i)
    others.push_back(json::Object{{"name", m.names[i]},
                                  {"value", m.values[i]},
                                  {"ratio", m.getRatio(i)}});
  json::Object object{
      {"row", row.name},           {"description", row.description},
      {"unit", getName(row.unit)}, {"value", m.values[0]},
      {"rounds", m.rounds},        {"against", std::move(others)}};
  if (row.goal > 0) {
    object["goal"] = row.goal;
    object["met"] = meetsGoal(row, m);
  }
  return object;
}

Error runTool(const char *argv0) {
  if (!(seconds > 0 && seconds <= 3600))
    return createStringError(inconvertibleErrorCode(),
                             formatv("--seconds: expected a number in 0 ... "
                                     "3600, but got {0}",
                                     seconds.getValue()));
  std::string self =
      sys::fs::getMainExecutable(argv0, reinterpret_cast<void *>(&meetsGoal));
  std::vector<Row> rows = makeRows(sys::path::parent_path(self).str());
  if (!served.empty()) {
    for (const Row &row : rows)
      if (row.name == served) {
        if (!row.missing.empty())
          return createStringError(inconvertibleErrorCode(),
                                   row.name + ": " + row.missing);
        return serve(row);
      }
    return createStringError(inconvertibleErrorCode(),
                             "--serve: expected a row of --list, but got '" +
                                 served + "'");
  }
  Regex regex(filter.empty() ? "." : filter.getValue());
  std::string invalid;
  if (!regex.isValid(invalid))
    return createStringError(inconvertibleErrorCode(),
                             "--filter: expected a regular expression, but got "
                             "'" +
                                 filter + "': " + invalid);
  erase_if(rows, [&](const Row &row) { return !regex.match(row.name); });
  if (rows.empty())
    return createStringError(inconvertibleErrorCode(),
                             "--filter: no row matches '" + filter +
                                 "'; --list prints their names");
  json::Array results;
  bool failed = false;
  for (const Row &row : rows) {
    if (list) {
      outs() << formatv("{0,-40} {1}\n", row.name, row.description);
      continue;
    }
    if (!row.missing.empty()) {
      outs() << formatv("{0,-40} not run: {1}\n", row.name, row.missing);
      continue;
    }
    Expected<Case> made = row.make();
    Expected<Measurement> measured =
        made ? measure(row, *made, seconds)
             : Expected<Measurement>(made.takeError());
    if (!measured) {
      // The other rows still have their worth.
      std::string message = toString(measured.takeError());
      outs() << formatv("{0,-40} failed: {1}\n", row.name, message);
      results.push_back(json::Object{{"row", row.name}, {"error", message}});
      failed = true;
      continue;
    }
    print(row, *measured);
    results.push_back(toJSON(row, *measured));
  }
  if (!jsonFile.empty())
    if (Error error = writeFile(jsonFile, [&](raw_ostream &os) {
          os << formatv("{0:2}",
                        json::Value(json::Object{{"bench", 1},
                                                 {"rows", std::move(results)}}))
             << "\n";
        }))
      return error;
  if (failed)
    return createStringError(inconvertibleErrorCode(), "some rows failed");
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  return runToolMain(argc, argv, {"fi-bench", category, overview},
                     [&] { return runTool(argv[0]); });
}
