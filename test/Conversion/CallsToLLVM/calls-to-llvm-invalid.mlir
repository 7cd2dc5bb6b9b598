// RUN: fi-opt %s --fi-calls-to-llvm --split-input-file --verify-diagnostics

fi.program @f run(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  fi.return %a : tensor<4xf32>
}
func.func @tensors(%a: tensor<4xf32>) -> tensor<4xf32> {
  %p = fi.plan @f()
  // expected-error @+1 {{expected memrefs and scalars, but got 'tensor<4xf32>': bufferize before fi-calls-to-llvm}}
  %r = fi.run @f(%a : tensor<4xf32>) by(%p) outs(%a : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

fi.program @f run(%a: memref<4xf64>) {
  fi.return
}
func.func @types(%a: memref<4xf64>) {
  // expected-error @+1 {{expected elements of a type that programs have at run time, but got 'memref<4xf64>'}}
  %p = fi.plan @f()
  fi.run @f(%a : memref<4xf64>) by(%p)
  return
}

// -----

fi.program @f run() {
  fi.return
}
func.func @branches(%c: i1) {
  // expected-error @+1 {{expected its runs in the same block or in regions of its ops: run fi-calls-to-llvm before loops become branches}}
  %p = fi.plan @f()
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  // expected-note @+1 {{see here}}
  fi.run @f() by(%p)
  cf.br ^bb2
^bb2:
  return
}

// -----

fi.program @f run() {
  fi.return
}
// expected-note @+1 {{see its definition}}
func.func private @fi_call_plan()
func.func @names() {
  // expected-error @+1 {{calls 'fi_call_plan' of the runtime, but the module has another symbol of this name}}
  %p = fi.plan @f()
  fi.run @f() by(%p)
  return
}

// -----

fi_tile.package @f {}
func.func @lowered() {
  // expected-error @+1 {{expected the fi.program 'f' to be there: run fi-calls-to-llvm before it is lowered}}
  %p = fi.plan @f()
  fi.run @f() by(%p)
  return
}
