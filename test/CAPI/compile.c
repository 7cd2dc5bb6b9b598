/*===- compile.c - the C interface, from text to numbers ------------------===*\
|*                                                                            *|
|* Part of fi, under the Apache License v2.0 with LLVM Exceptions.            *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

/*
 * RUN: fi-capi-test %t.fipkg | FileCheck %s
 */

#include "fi-c/Compiler.h"
#include "fi-c/FI.h"
#include "fi-runtime/fi_runtime.h"
#include "mlir-c/Diagnostics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUESTS = 3, HEADS = 4, KV_HEADS = 2, DIM = 32, ROWS = 6, KEYS = 50 };

static const char *const text =
    "!ix = tensor<?xi32>\n"
    "!q = tensor<?x4x32xf32>\n"
    "!t = tensor<?x2x32xf32>\n"
    "fi.program @layer plan(%rows: !ix, %keys: !ix)\n"
    "    run(%q: !q, %k: !t, %v: !t) -> (!q) {\n"
    "  %kv = fi.view.ragged %k, %v indptr(%keys : !ix) : !t, !t\n"
    "      -> !fi.ragged_kv<2x32xf32>\n"
    "  %o = fi.attention %q rows(%rows : !ix) over %kv scale(0.25)\n"
    "      mask(#fi.causal) : !q over !fi.ragged_kv<2x32xf32> -> !q\n"
    "  fi.return %o : !q\n"
    "}\n";

static void check(int isGood, const char *what) {
  if (isGood)
    return;
  fprintf(stderr, "compile.c: %s: %s\n", what, fiGetLastError());
  exit(1);
}

static void checkRuntime(fi_status status, const char *what) {
  if (status == FI_OK)
    return;
  fprintf(stderr, "compile.c: %s: %s\n", what, fi_last_error());
  exit(1);
}

static MlirStringRef string(const char *s) {
  return mlirStringRefCreateFromCString(s);
}

static MlirModule parse(MlirContext context) {
  MlirModule module = fiModuleParse(context, string(text), string("layer"));
  check(!mlirModuleIsNull(module), "parse");
  return module;
}

static void setChip(MlirModule module, const char *name) {
  MlirContext context = mlirModuleGetContext(module);
  MlirAttribute target = fiTargetAttrGetChip(context, string(name));
  check(!mlirAttributeIsNull(target), "target");
  mlirOperationSetAttributeByName(mlirModuleGetOperation(module),
                                  fiGetTargetAttrName(), target);
}

/*===-- Errors --------------------------------------------------------------*/

static int errorsSeen;

static MlirLogicalResult onDiagnostic(MlirDiagnostic diagnostic, void *data) {
  (void)data;
  if (mlirDiagnosticGetSeverity(diagnostic) == MlirDiagnosticError)
    ++errorsSeen;
  return mlirLogicalResultSuccess();
}

static void testErrors(void) {
  MlirContext context = fiContextCreate();
  MlirDiagnosticHandlerID id =
      mlirContextAttachDiagnosticHandler(context, onDiagnostic, NULL, NULL);

  /* CHECK-LABEL: {{^}}errors{{$}}
   */
  printf("errors\n");
  MlirModule bad =
      fiModuleParse(context, string("fi.program @p plan() run(%x: i1) -> () {"),
                    string("bad"));
  /* CHECK-NEXT: null, 1 seen: 'bad' is not a valid program
   * CHECK-NEXT: loc("bad":1:{{[0-9]+}}): error:
   */
  printf("%s, %d seen: %s\n", mlirModuleIsNull(bad) ? "null" : "module",
         errorsSeen, fiGetLastError());
  mlirContextDetachDiagnosticHandler(context, id);

  /* Nothing is printed by itself: the standard error is the test's. */
  bad = fiModuleParse(context, string("%"), string("worse"));
  /* CHECK: null, 1 seen: 'worse' is not a valid program
   */
  printf("%s, %d seen: %s\n", mlirModuleIsNull(bad) ? "null" : "module",
         errorsSeen, fiGetLastError());

  /* A text ends where its length says, whatever lies behind it.
   * CHECK: null: 'cut' is not a valid program
   * CHECK-NEXT: {{.*}}error: unknown attribute `casual` in dialect `fi`
   */
  const char *longer = "module attributes {a = #fi.casualAndMore} {}";
  bad = fiModuleParse(
      context,
      mlirStringRefCreate(longer, strlen(longer) - strlen("AndMore} {}")),
      string("cut"));
  printf("%s: %s\n", mlirModuleIsNull(bad) ? "null" : "module",
         fiGetLastError());

  /* No text is a module without programs, wherever it does not lie. */
  MlirModule empty =
      fiModuleParse(context, mlirStringRefCreate(NULL, 0), string("empty"));
  check(!mlirModuleIsNull(empty), "parse no text");
  mlirModuleDestroy(empty);

  MlirModule module = parse(context);
  /* CHECK: failure: expected names of passes, but got 'fi-prepare,no-such'
   * CHECK-SAME: no-such
   */
  MlirLogicalResult result =
      fiModuleRunPipeline(module, string("fi-prepare,no-such"));
  printf("%s: %s\n", mlirLogicalResultIsFailure(result) ? "failure" : "success",
         fiGetLastError());
  /* CHECK: failure: expected a stage of 'cpu', fi, fi_tile, vector, llvm, but
   * CHECK-SAME: got 'placed'
   */
  result = fiModuleRunStages(module, string("placed"));
  printf("%s: %s\n", mlirLogicalResultIsFailure(result) ? "failure" : "success",
         fiGetLastError());
  /* CHECK: null: {{.*}}sm_90a{{.*}}sm_12
   */
  MlirAttribute none = fiTargetAttrGetChip(context, string("sm_12"));
  printf("%s: %s\n", mlirAttributeIsNull(none) ? "null" : "target",
         fiGetLastError());
  /* CHECK: null: {{.*}}'absent'
   */
  FiCompileOptions options = {.struct_size = sizeof(options),
                              .program = string("absent")};
  FiProgram program = fiProgramCompile(module, &options);
  printf("%s: %s\n", fiProgramIsNull(program) ? "null" : "program",
         fiGetLastError());
  /* CHECK: null: FiCompileOptions: expected struct_size of at least
   */
  options.struct_size = 1;
  program = fiProgramCompile(module, &options);
  printf("%s: %s\n", fiProgramIsNull(program) ? "null" : "program",
         fiGetLastError());
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
}

/*===-- Passes and schedules ------------------------------------------------*/

static MlirWalkResult printSchedules(MlirOperation op, void *count) {
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
  if (name.length != 12 || memcmp(name.data, "fi.attention", 12))
    return MlirWalkResultAdvance;
  for (intptr_t i = 0; i < fiAttentionGetNumSchedules(op);
       ++i, ++*(int *)count) {
    MlirAttribute schedule = fiAttentionGetSchedule(op, i);
    check(fiAttributeIsASchedule(schedule), "schedule");
    printf("up to %d rows: tiles of %d rows and %d keys, %d warps\n",
           (int)fiScheduleAttrGetMaxRows(schedule),
           (int)fiScheduleAttrGetTileRows(schedule),
           (int)fiScheduleAttrGetTileKeys(schedule),
           (int)fiScheduleAttrGetWarps(schedule));
  }
  check(mlirAttributeIsNull(
            fiAttentionGetSchedule(op, fiAttentionGetNumSchedules(op))),
        "no schedule beyond the last");
  return MlirWalkResultAdvance;
}

static int countSchedules(MlirModule module) {
  int count = 0;
  mlirOperationWalk(mlirModuleGetOperation(module), printSchedules, &count,
                    MlirWalkPreOrder);
  return count;
}

static void testPasses(MlirContext context) {
  /* CHECK-LABEL: {{^}}passes{{$}}
   * CHECK-NEXT: before: 0
   * CHECK-NEXT: up to {{[0-9]+}} rows: tiles of {{[1-9][0-9]*}} rows and
   * {{[1-9][0-9]*}} keys, {{[1-9]}} CHECK: of a GPU: {{[1-9]}}
   */
  printf("passes\n");
  MlirModule module = parse(context);
  printf("before: %d\n", countSchedules(module));
  setChip(module, "sm_80");
  check(mlirLogicalResultIsSuccess(
            fiModuleRunPipeline(module, string("builtin.module(fi-prepare)"))),
        "fi-prepare");
  printf("of a GPU: %d\n", countSchedules(module));
  mlirModuleDestroy(module);

  module = parse(context);
  check(mlirLogicalResultIsSuccess(fiModuleRunStages(module, string("vector"))),
        "stages");
  /* CHECK: target cpu: 1, is a CPU's: 1
   */
  MlirAttribute target = mlirOperationGetAttributeByName(
      mlirModuleGetOperation(module), fiGetTargetAttrName());
  MlirStringRef name = fiTargetAttrGetName(target);
  printf("target %.*s: %d, is a CPU's: %d\n", (int)name.length, name.data,
         fiAttributeIsATarget(target), fiTargetAttrIsCPU(target));
  mlirModuleDestroy(module);
}

/*===-- Translation ---------------------------------------------------------*/

/* Prints the line in which something begins. */
static void printStart(MlirStringRef code, void *what) {
  size_t length = strlen(what);
  for (size_t i = 0; i + length <= code.length; ++i)
    if (!memcmp(code.data + i, what, length)) {
      printf("%.*s\n", (int)strcspn(code.data + i, "\n"), code.data + i);
      return;
    }
  printf("not there\n");
}

static void testTranslation(MlirContext context, const char *directory) {
  /* CHECK-LABEL: {{^}}translation{{$}}
   * CHECK-NEXT: .target sm_90a
   * CHECK-NEXT: "program": "layer"
   * CHECK-NEXT: define
   */
  printf("translation\n");
  MlirModule module = parse(context);
  setChip(module, "sm_90a");
  check(
      mlirLogicalResultIsSuccess(fiModuleTranslate(
          module, string(""), FI_CODE_ASSEMBLY, printStart, ".target sm_90a")),
      "PTX");
  MlirModule host = parse(context);
  check(mlirLogicalResultIsSuccess(
            fiModuleTranslate(host, string("layer"), FI_CODE_MANIFEST,
                              printStart, "\"program\": \"layer\"")),
        "manifest");
  check(mlirLogicalResultIsSuccess(fiModuleTranslate(
            host, string(""), FI_CODE_LLVM_IR, printStart, "define ")),
        "LLVM IR");
  /* CHECK-NEXT: failure: expected a kind of code
   */
  check(mlirLogicalResultIsFailure(
            fiModuleTranslate(host, string(""), (FiCodeKind)7, printStart, "")),
        "refused");
  printf("failure: %s\n", fiGetLastError());

  FiCompileOptions options = {.struct_size = sizeof(options),
                              .no_cache = true,
                              .no_machine_code = true};
  FiProgram program = fiProgramCompile(module, &options);
  check(!fiProgramIsNull(program), "compile for a GPU");
  MlirStringRef ptx = fiProgramGetPTX(program),
                manifest = fiProgramGetManifest(program);
  fi_code code = {FI_DRIVER_PTX, ptx.data, ptx.length};
  fi_package *package;
  checkRuntime(
      fi_package_from_code(manifest.data, manifest.length, &code, 1, &package),
      "package of a GPU");
  const char *name;
  checkRuntime(fi_package_target(package, NULL, &name), "target");
  /* CHECK-NEXT: package for sm_90a, for a GPU: 1, machine code: 0
   */
  printf("package for %s, for a GPU: %d, machine code: %d\n", name,
         fiProgramIsForGPU(program),
         (int)fiProgramGetMachineCode(program).length);
  fi_package_release(package);
  fiProgramDestroy(program);

  check(mlirLogicalResultIsSuccess(
            fiModuleWritePackage(host, string(""), string(directory))),
        "package");
  checkRuntime(fi_package_open(directory, &package), "open");
  /* CHECK-NEXT: package of layer
   */
  printf("package of %s\n", fi_package_program(package));
  fi_package_release(package);
  mlirModuleDestroy(host);
  mlirModuleDestroy(module);
}

/*===-- Execution -----------------------------------------------------------*/

static int32_t rowEnds[] = {0, 1, 1, 6}, keyEnds[] = {0, 20, 24, 50};
static float q[ROWS][HEADS][DIM], k[KEYS][KV_HEADS][DIM],
    v[KEYS][KV_HEADS][DIM];
static float out[ROWS][HEADS][DIM];

/* The largest difference from the definition. */
static double compare(void) {
  double largest = 0;
  for (int i = 0; i < REQUESTS; ++i)
    for (int row = rowEnds[i]; row < rowEnds[i + 1]; ++row)
      for (int head = 0; head < HEADS; ++head) {
        int kvHead = head / (HEADS / KV_HEADS);
        int seen = keyEnds[i + 1] - keyEnds[i] - (rowEnds[i + 1] - 1 - row);
        double sum = 0, weighted[DIM] = {0};
        for (int j = keyEnds[i]; j < keyEnds[i] + seen; ++j) {
          double score = 0;
          for (int d = 0; d < DIM; ++d)
            score += (double)q[row][head][d] * k[j][kvHead][d];
          double weight = exp(0.25 * score);
          sum += weight;
          for (int d = 0; d < DIM; ++d)
            weighted[d] += weight * v[j][kvHead][d];
        }
        for (int d = 0; d < DIM; ++d)
          largest = fmax(largest, fabs(weighted[d] / sum - out[row][head][d]));
      }
  return largest;
}

static void fill(float *to, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    to[i] = (float)(seed >> 8) / 8388608.0f - 1;
  }
}

static fi_value tensor(void *data, int32_t dtype, int32_t rank,
                       const int64_t *shape) {
  fi_value value = {.kind = FI_VALUE_TENSOR,
                    .as.tensor = {data, dtype, rank, shape, NULL}};
  return value;
}

static void runProgram(FiProgram program) {
  MlirStringRef manifest = fiProgramGetManifest(program);
  fi_package *package;
  checkRuntime(fi_package_from_memory(manifest.data, manifest.length,
                                      fiProgramLookup, program.ptr, &package),
               "package");
  int64_t ends = REQUESTS + 1;
  int64_t qShape[] = {ROWS, HEADS, DIM}, kShape[] = {KEYS, KV_HEADS, DIM};
  fi_value tables[] = {tensor(rowEnds, FI_I32, 1, &ends),
                       tensor(keyEnds, FI_I32, 1, &ends)};
  fi_plan *plan;
  checkRuntime(fi_plan_create(package, tables, 2, NULL, &plan), "plan");
  size_t bytes = fi_plan_workspace_bytes(plan);
  void *workspace = aligned_alloc(FI_WORKSPACE_ALIGNMENT,
                                  (bytes / FI_WORKSPACE_ALIGNMENT + 1) *
                                      FI_WORKSPACE_ALIGNMENT);
  fi_value values[] = {tensor(q, FI_F32, 3, qShape),
                       tensor(k, FI_F32, 3, kShape),
                       tensor(v, FI_F32, 3, kShape)};
  fi_tensor result = tensor(out, FI_F32, 3, qShape).as.tensor;
  checkRuntime(fi_run(plan, 0, values, 3, &result, 1, workspace, bytes), "run");
  free(workspace);
  fi_plan_destroy(plan);
  fi_package_release(package);
}

/* Text to numbers; returns milliseconds. */
static double testExecution(void) {
  fill(&q[0][0][0], sizeof(q) / sizeof(float), 1);
  fill(&k[0][0][0], sizeof(k) / sizeof(float), 2);
  fill(&v[0][0][0], sizeof(v) / sizeof(float), 3);
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  MlirContext context = fiContextCreate();
  MlirModule module = parse(context);
  FiCompileOptions options = {.struct_size = sizeof(options), .no_cache = true};
  FiProgram program = fiProgramCompile(module, &options);
  check(!fiProgramIsNull(program), "compile");
  runProgram(program);
  clock_gettime(CLOCK_MONOTONIC, &end);
  fiProgramDestroy(program);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  return (double)(end.tv_sec - start.tv_sec) * 1e3 +
         (double)(end.tv_nsec - start.tv_nsec) / 1e6;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: fi-capi-test PACKAGE | --time\n");
    return 1;
  }
  double ms = testExecution();
  if (!strcmp(argv[1], "--time")) {
    printf("text to numbers, cold: %.0f ms\n", ms);
    return compare() < 1e-5 ? 0 : 1;
  }
  int isRight = compare() < 1e-5;
  testErrors();
  MlirContext context = fiContextCreate();
  testPasses(context);
  testTranslation(context, argv[1]);
  mlirContextDestroy(context);
  /* CHECK: execution: agrees
   */
  printf("execution: %s\n", isRight ? "agrees" : "differs");
  return 0;
}
