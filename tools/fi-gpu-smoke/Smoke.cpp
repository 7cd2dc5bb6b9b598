//===- Smoke.cpp - Checks of the runtime on a device ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches of every sort through plan and run, updates, graphs, refusals, and
// what the host's part of a run costs.
//
//===----------------------------------------------------------------------===//
#include "Smoke.h"
#include "NaiveBatch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace fi::smoke {
namespace {

using Clock = std::chrono::steady_clock;

double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

struct Shape {
  const char *name;
  std::vector<int64_t> queries, keys;
  int64_t padding;
};

std::vector<Shape> shapes(bool small) {
  if (small)
    return {{"one decode, split", {1}, {300}, 0},
            {"mixed", {1, 5, 1, 0, 9}, {70, 5, 1, 0, 40}, 2},
            {"only padding", {}, {}, 3}};
  std::vector<int64_t> ones(64, 1), lengths;
  for (int64_t i = 0; i < 64; ++i)
    lengths.push_back(1 + i * i % 1500);
  return {{"one decode, split", {1}, {40000}, 0},
          {"decodes of different lengths", ones, lengths, 0},
          {"one prefill", {700}, {700}, 0},
          {"mixed, with padding",
           {1, 130, 1, 0, 17, 4},
           {9000, 130, 1, 0, 800, 33},
           5},
          {"no keys before", {1, 1}, {1, 1}, 0},
          {"only padding", {}, {}, 3}};
}

class Smoke {
public:
  Smoke(const fi_driver *driver, const Options &options)
      : driver(driver), options(options) {}
  ~Smoke() {
    if (stream)
      driver->stream_destroy(driver->self, stream);
    fi_plan_destroy(plan);
    fi_package_release(package);
    if (entered)
      driver->context_leave(driver->self, context);
    if (context)
      driver->context_close(driver->self, context);
    fi_device_release(device);
  }

  int all() {
    if (fi_device_open(driver, options.device, &device) != FI_OK) {
      std::printf("no device: %s\n", fi_last_error());
      return -1;
    }
    driver = fi_device_driver(device);
    fi_driver_device info;
    fi_device_describe(device, &info);
    std::printf("device %d: %s, sm_%d%d, %d multiprocessors, %lld bytes of "
                "shared memory for a CTA, %s\n",
                options.device, info.name, info.compute_major,
                info.compute_minor, info.multiprocessors,
                (long long)info.shared_optin, info.driver);
    if (driver->context_open(driver->self, options.device, &context) ||
        driver->context_enter(driver->self, context, &entered) ||
        driver->stream_create(driver->self, &stream)) {
      std::printf("no context: %s\n", lastError(driver).c_str());
      return -1;
    }
    Clock::time_point start = Clock::now();
    report("open the package",
           status(fi_package_open(options.package.c_str(), &package)));
    if (!package)
      return failures;
    report("load it on the device", status(fi_package_load(package, device)));
    std::printf("   %.0f us to open and load\n", microsecondsSince(start));
    for (const Shape &shape : shapes(options.small))
      batch(shape);
    if (options.capture)
      graphSafe();
    refusals();
    hostTime();
    std::printf(failures ? "%d FAILED\n" : "all passed\n", failures);
    return failures;
  }

private:
  static std::string status(fi_status got) {
    return got == FI_OK ? "" : fi_last_error();
  }
  void report(const std::string &what, const std::string &problem) {
    failures += !problem.empty();
    std::printf("%s %s%s%s\n", problem.empty() ? "ok" : "FAILED", what.c_str(),
                problem.empty() ? "" : ": ", problem.c_str());
    std::fflush(stdout);
  }

  fi_plan_options planOptions(const NaiveBatch &batch) const {
    fi_plan_options o = {};
    o.struct_size = sizeof(o);
    o.device = device;
    o.stream = stream;
    o.rows = batch.rows();
    return o;
  }

  std::string launch(NaiveBatch &batch, const DeviceMemory &workspace) {
    return status(fi_run_device(plan, fi_plan_generation(plan),
                                batch.run.data(), int32_t(batch.run.size()),
                                batch.results.data(), 2, workspace.data(),
                                fi_plan_workspace_bytes(plan), stream));
  }

  /// Plans or replans, runs, compares; then as a graph.
  void batch(const Shape &shape) {
    NaiveBatch made(driver, shape.queries, shape.keys, shape.padding, ++seed);
    for (fi_split_policy policy :
         {FI_SPLIT_DEFAULT, FI_SPLIT_FIXED, FI_SPLIT_NONE}) {
      const char *names[] = {"balanced", "", "fixed splits", "no splits"};
      std::string what = std::string(shape.name) + ", " + names[policy];
      fi_plan_options o = planOptions(made);
      o.split_policy = policy;
      o.split_keys = 96;
      fi_status got =
          plan ? fi_plan_update(plan, made.tables(), made.tableCount(), &o)
               : fi_plan_create(package, made.tables(), made.tableCount(), &o,
                                &plan);
      if (got != FI_OK) {
        report(what, fi_last_error());
        continue;
      }
      DeviceMemory workspace(driver, fi_plan_workspace_bytes(plan));
      std::string problem = made.reset(stream);
      if (problem.empty())
        problem = launch(made, workspace);
      if (problem.empty())
        problem = made.compare(stream);
      report(what, problem);
      char *text = nullptr;
      if (options.explain && fi_plan_explain(plan, &text) == FI_OK)
        std::printf("%s", text);
      fi_string_free(text);
      if (!problem.empty() || !options.capture || policy != FI_SPLIT_DEFAULT)
        continue;
      problem = made.reset(stream);
      Step replay;
      if (problem.empty())
        problem = options.capture(
            stream, [&] { return launch(made, workspace); }, replay);
      for (int time = 0; time < 3 && problem.empty(); ++time)
        problem = replay();
      if (problem.empty())
        problem = made.compare(stream);
      report(what + ", as a graph", problem);
    }
  }

  /// One graph for batches of different lengths: captured once with the
  /// largest, launched after each update of its plan.
  void graphSafe() {
    bool small = options.small;
    int64_t many = small ? 5 : 40, longest = small ? 90 : 3000;
    std::vector<int64_t> queries(many, 1), keys(many, longest);
    queries[1] = small ? 6 : 200;
    NaiveBatch first(driver, queries, keys, 2, ++seed);
    fi_plan_options o = planOptions(first);
    o.graph_safe = 1;
    fi_plan *before = plan;
    plan = nullptr;
    std::string problem = status(
        fi_plan_create(package, first.tables(), first.tableCount(), &o, &plan));
    DeviceMemory workspace(driver, fi_plan_workspace_bytes(plan));
    Step replay;
    if (problem.empty())
      problem = options.capture(
          stream, [&] { return launch(first, workspace); }, replay);
    report("capture a graph-safe plan", problem);
    char *text = nullptr;
    if (options.explain && fi_plan_explain(plan, &text) == FI_OK)
      std::printf("%s", text);
    fi_string_free(text);
    auto again = [&](NaiveBatch &batch) {
      std::string wrong = batch.reset(stream);
      if (wrong.empty())
        wrong = replay();
      return wrong.empty() ? batch.compare(stream) : wrong;
    };
    if (problem.empty())
      report("graph of the first batch", again(first));
    struct {
      const char *name;
      std::vector<int64_t> queries, keys;
    } later[] = {
        {"graph after an update, one decode, split", {1}, {many * longest / 2}},
        {"graph after an update, no requests", {}, {}},
        {"graph after an update, mixed",
         {1, queries[1] / 2, 0, 1},
         {longest, longest / 2, 5, 1}},
        {"graph after an update, the first lengths", queries, keys}};
    for (const auto &one : later) {
      int64_t rows = first.rows();
      for (int64_t length : one.queries)
        rows -= length;
      NaiveBatch batch(driver, one.queries, one.keys, rows, ++seed);
      batch.moveTo(first);
      if (problem.empty()) {
        std::string wrong = status(
            fi_plan_update(plan, batch.tables(), batch.tableCount(), nullptr));
        report(one.name, wrong.empty() ? again(batch) : wrong);
      }
    }
    driver->stream_synchronize(driver->self, stream);
    fi_plan_destroy(plan);
    plan = before;
  }

  void refuse(const std::string &what, NaiveBatch &batch,
              const DeviceMemory &workspace, const char *part) {
    std::string said = launch(batch, workspace);
    report("refuses " + what, said.find(part) != std::string::npos
                                  ? ""
                                  : "expected a sentence with '" +
                                        std::string(part) + "', but got '" +
                                        said + "'");
  }

  void refusals() {
    NaiveBatch made(driver, {1, 3}, {20, 3}, 0, 99);
    fi_plan_options o = planOptions(made);
    fi_status got =
        plan ? fi_plan_update(plan, made.tables(), made.tableCount(), &o)
             : FI_INVALID_ARGUMENT;
    if (got != FI_OK)
      return report("plan for refusals", fi_last_error());
    DeviceMemory workspace(driver, fi_plan_workspace_bytes(plan));
    void *right = made.run[3].as.tensor.data;
    std::vector<float> host(1 << 16);
    made.run[3].as.tensor.data = host.data();
    refuse("host memory", made, workspace, "expected memory of device");
    made.run[3].as.tensor.data = nullptr;
    refuse("NULL", made, workspace, "expected data, but got NULL");
    made.run[3].as.tensor.data = static_cast<float *>(right) + 1;
    refuse("misaligned data", made, workspace, "aligned to 8 bytes");
    made.run[3].as.tensor.data = right;
    std::string problem = made.reset(stream);
    if (problem.empty())
      problem = launch(made, workspace);
    if (problem.empty())
      problem = made.compare(stream);
    report("runs after refusals", problem);
  }

  /// Microseconds of the host per run, while the device has nothing else.
  void hostTime() {
    NaiveBatch made(driver, {1}, {16}, 0, 5);
    fi_plan_options o = planOptions(made);
    if (!plan || fi_plan_update(plan, made.tables(), made.tableCount(), &o))
      return report("plan for times", fi_last_error());
    DeviceMemory workspace(driver, fi_plan_workspace_bytes(plan));
    std::string problem = made.reset(stream);
    double best = 1e30, bestPlan = 1e30;
    int rounds = options.small ? 2 : 50;
    for (int round = 0; round < rounds && problem.empty(); ++round) {
      constexpr int runs = 20;
      Clock::time_point start = Clock::now();
      for (int i = 0; i < runs && problem.empty(); ++i)
        problem = launch(made, workspace);
      best = std::min(best, microsecondsSince(start) / runs);
      if (driver->stream_synchronize(driver->self, stream))
        problem = lastError(driver);
      start = Clock::now();
      if (problem.empty())
        problem =
            status(fi_plan_update(plan, made.tables(), made.tableCount(), &o));
      bestPlan = std::min(bestPlan, microsecondsSince(start));
    }
    report("times", problem);
    std::printf(
        "   host: %.2f us for a run of 3 launches, %.2f us for a plan\n", best,
        bestPlan);
  }

  const fi_driver *driver;
  const Options &options;
  fi_device *device = nullptr;
  fi_package *package = nullptr;
  fi_plan *plan = nullptr;
  void *context = nullptr, *stream = nullptr;
  int32_t entered = 0;
  uint32_t seed = 0;
  int failures = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Recording
//===----------------------------------------------------------------------===//

/// Drivers have one `self` for all of their functions, so the one that records
/// is found here.
static RecordingDriver *active = nullptr;

RecordingDriver::RecordingDriver(const fi_driver *inner)
    : inner(inner), driver(*inner) {
  driver.launch = launch;
  active = this;
}

RecordingDriver::~RecordingDriver() { active = nullptr; }

int RecordingDriver::launch(void *self, void *function,
                            const fi_driver_launch *shape) {
  if (!active->recording)
    return active->inner->launch(self, function, shape);
  const char *params = static_cast<const char *>(shape->params);
  active->recorded.push_back(
      {function, *shape, {params, params + shape->param_bytes}});
  return 0;
}

Capture RecordingDriver::capture() {
  return [this](void *, const Step &body, Step &again) {
    recorded.clear();
    recording = true;
    std::string problem = body();
    recording = false;
    again = [this, kept = recorded]() mutable {
      for (Launch &one : kept) {
        one.shape.params = one.params.data();
        if (inner->launch(inner->self, one.function, &one.shape))
          return lastError(inner);
      }
      return std::string();
    };
    return problem.empty() && recorded.empty() ? "the graph is empty" : problem;
  };
}

int runSmoke(const fi_driver *driver, const Options &options) {
  return Smoke(driver, options).all();
}

} // namespace fi::smoke
