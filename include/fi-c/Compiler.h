/*===- Compiler.h - C interface to the compiler -------------------*- C -*-===*\
|*                                                                            *|
|* Part of fi, under the Apache License v2.0 with LLVM Exceptions.            *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* From the text of a program to code: parse, run passes, compile. What comes *|
|* out is planned and run by the runtime (fi-runtime/fi_runtime.h), which     *|
|* needs none of this.                                                        *|
|*                                                                            *|
|*   MlirContext context = fiContextCreate();                                 *|
|*   MlirModule module = fiModuleParse(context, text, name);                  *|
|*   FiProgram program = fiProgramCompile(module, options);                   *|
|*   fi_package_from_memory(..., fiProgramLookup, program.ptr, &package);     *|
|*                                                                            *|
|* What fails returns null or a failure, and leaves a sentence behind. Nothing*|
|* that a caller may put into a text ends the process.                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FI_C_COMPILER_H
#define FI_C_COMPILER_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Errors --------------------------------------------------------------*/

/// The sentence of the last failure in this thread, with the diagnostics that
/// led to it, a line each; empty if there was none. Good until the next call
/// that fails in the thread. Diagnostics also go to the handlers that the
/// context has (mlirContextAttachDiagnosticHandler).
MLIR_CAPI_EXPORTED const char *fiGetLastError(void);

/*===-- Contexts and modules ------------------------------------------------*/

/// A context with all of fi's dialects, which prints no diagnostics of its own.
/// Destroyed by mlirContextDestroy. Any other context will do as well, if its
/// registry has fiRegisterAllDialects.
MLIR_CAPI_EXPORTED MlirContext fiContextCreate(void);

/// Parses and verifies text or bytecode; `name` is what messages call it. Null
/// on failure. Destroyed by mlirModuleDestroy.
MLIR_CAPI_EXPORTED MlirModule fiModuleParse(MlirContext context,
                                            MlirStringRef text,
                                            MlirStringRef name);

/// Runs passes and pipelines by name over a module, as fi-opt's
/// --pass-pipeline: "fi-prepare,fi-lower-to-tile{bf16-dot=true}". The module is
/// of no use after a failure.
MLIR_CAPI_EXPORTED MlirLogicalResult fiModuleRunPipeline(MlirModule module,
                                                         MlirStringRef names);

/// Runs the stages of the module's target (this machine's CPU, if it has none)
/// from level 1 up to `last`: `fi`, `fi_tile`, and `vector` or `llvm` for a
/// CPU, `placed` or `nvvm` for a GPU. The module is of no use after a failure.
MLIR_CAPI_EXPORTED MlirLogicalResult fiModuleRunStages(MlirModule module,
                                                       MlirStringRef last);

/// Writes a package, a directory that fi_package_open opens, for the module's
/// target: complete, or not at all. An empty name: the module's only program.
MLIR_CAPI_EXPORTED MlirLogicalResult fiModuleWritePackage(
    MlirModule module, MlirStringRef program, MlirStringRef directory);

typedef enum FiCodeKind {
  FI_CODE_LLVM_IR = 0,  /* optimised LLVM IR of the kernels */
  FI_CODE_ASSEMBLY = 1, /* of a GPU: PTX */
  FI_CODE_MANIFEST = 2  /* JSON */
} FiCodeKind;

/// Gives the code of a program as text.
MLIR_CAPI_EXPORTED MlirLogicalResult
fiModuleTranslate(MlirModule module, MlirStringRef program, FiCodeKind code,
                  MlirStringCallback callback, void *userData);

/*===-- Programs ------------------------------------------------------------*/

/// Compiled code of one program, in memory.
typedef struct FiProgram {
  void *ptr;
} FiProgram;

/// Zero-initialise, set struct_size, and set what you need.
typedef struct FiCompileOptions {
  size_t struct_size; /* sizeof(FiCompileOptions) */
  /// The program, where the module has several.
  MlirStringRef program;
  /// Code is neither looked up in the cache nor kept there.
  bool no_cache;
  /// For a GPU: no machine code, even where ptxas is found.
  bool no_machine_code;
} FiCompileOptions;

/// Compiles for the module's target (this machine's CPU, if it has none). The
/// module is not changed. Null on failure. NULL options are all zeros.
MLIR_CAPI_EXPORTED FiProgram fiProgramCompile(MlirModule module,
                                              const FiCompileOptions *options);
MLIR_CAPI_EXPORTED void fiProgramDestroy(FiProgram program);
static inline bool fiProgramIsNull(FiProgram program) { return !program.ptr; }

MLIR_CAPI_EXPORTED bool fiProgramIsForGPU(FiProgram program);
/// JSON. This and what follows live as long as the program.
MLIR_CAPI_EXPORTED MlirStringRef fiProgramGetManifest(FiProgram program);
/// Of a GPU; empty for a CPU. Machine code is empty where ptxas was not found.
MLIR_CAPI_EXPORTED MlirStringRef fiProgramGetPTX(FiProgram program);
MLIR_CAPI_EXPORTED MlirStringRef fiProgramGetMachineCode(FiProgram program);
/// Of a CPU: the address of a symbol, or NULL. In the form that
/// fi_package_from_memory takes, with the program's `ptr` as the context.
MLIR_CAPI_EXPORTED void *fiProgramLookup(void *program, const char *symbol);

#ifdef __cplusplus
}
#endif

#endif /* FI_C_COMPILER_H */
