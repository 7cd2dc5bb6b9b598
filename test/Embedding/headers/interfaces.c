/*===- interfaces.c - the interfaces in C, installed ----------------------===*\
|*                                                                            *|
|* Part of fi, under the Apache License v2.0 with LLVM Exceptions.            *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#include "c_headers.h"

#include <stdio.h>

int main(void) {
  MlirContext context = fiContextCreate();
  MlirModule module =
      fiModuleParse(context, mlirStringRefCreateFromCString("module {}"),
                    mlirStringRefCreateFromCString("text"));
  FiProgram none = fiProgramCompile(module, NULL);
  /* A module without a program is refused by a sentence. */
  int isRight =
      !mlirModuleIsNull(module) && fiProgramIsNull(none) && fiGetLastError()[0];
  printf("%s; %s\n", fi_runtime_version(), fiGetLastError());
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  return !isRight;
}
