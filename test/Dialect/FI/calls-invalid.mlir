// RUN: fi-opt %s --split-input-file --verify-diagnostics

// expected-note @+1 {{see its definition}}
func.func private @f()
func.func @g() {
  // expected-error @+1 {{expected the name of an fi.program, but got 'f', which is 'func.func' [CAL1]}}
  %p = fi.plan @f()
  return
}

// -----

func.func @g() {
  // expected-error @+1 {{expected the name of an fi.program, but got 'f' [CAL1]}}
  %p = fi.plan @f()
  return
}

// -----

// expected-note @+1 {{see the program}}
fi.program @f plan(%a: tensor<?xi32>) run(%n: index) {
  fi.return
}
func.func @g() {
  // expected-error @+1 {{expected 1 operands, one for each plan argument of 'f', but got 0 [CAL2]}}
  %p = fi.plan @f()
  return
}

// -----

// expected-note @+1 {{see the program}}
fi.program @f plan(%a: tensor<?xi32>) run(%n: index) {
  fi.return
}
func.func @g(%a: tensor<?xi64>) {
  // expected-error @+1 {{expected for plan argument 'a' a value of type 'tensor<?xi32>', or a memref of its shape, but got 'tensor<?xi64>' [CAL2]}}
  %p = fi.plan @f(%a : tensor<?xi64>)
  return
}

// -----

// expected-note @+1 {{see the program}}
fi.program @f plan(%a: tensor<?xi32>) run(%n: index) {
  fi.return
}
func.func @g(%a: memref<4xi32>) {
  // expected-error @+1 {{expected for plan argument 'a' a value of type 'tensor<?xi32>', or a memref of its shape, but got 'memref<4xi32>' [CAL2]}}
  %p = fi.plan @f(%a : memref<4xi32>)
  return
}

// -----

fi.program @f plan(%n: tensor<?xi32>) run(%a: tensor<?x?xi32>, %m: memref<4x?xf32>) {
  fi.return
}
func.func @g(%a: tensor<?xi32>, %n: index) {
  // expected-error @+1 {{expected no 'sizes', or 3, one for each open size of the run arguments of 'f', but got 2 [CAL3]}}
  %p = fi.plan @f(%a : tensor<?xi32>) sizes(%n, %n)
  return
}

// -----

// expected-note @+1 {{see the program}}
fi.program @f run(%n: index) {
  fi.return
}
func.func @g(%s: f32) {
  %p = fi.plan @f()
  // expected-error @+1 {{expected for run argument 'n' a value of type 'index', or a memref of its shape, but got 'f32' [CAL2]}}
  fi.run @f(%s : f32) by(%p)
  return
}

// -----

fi.program @f run(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  fi.return %a : tensor<4xf32>
}
func.func @g(%a: tensor<4xf32>) {
  %p = fi.plan @f()
  // expected-error @+1 {{expected 'outs' to have 1 operands, one for each result of 'f', but got 0 [CAL4]}}
  fi.run @f(%a : tensor<4xf32>) by(%p)
  return
}

// -----

fi.program @f run(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  fi.return %a : tensor<4xf32>
}
func.func @g(%a: tensor<4xf32>, %o: memref<5xf32>) {
  %p = fi.plan @f()
  // expected-error @+1 {{expected operand 0 of 'outs' of type 'tensor<4xf32>', or a memref of its shape, but got 'memref<5xf32>' [CAL4]}}
  fi.run @f(%a : tensor<4xf32>) by(%p) outs(%o : memref<5xf32>)
  return
}

// -----

fi.program @f run(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  fi.return %a : tensor<4xf32>
}
func.func @g(%a: tensor<4xf32>) {
  %p = fi.plan @f()
  // expected-error @+1 {{expected a result of the type of each tensor of 'outs', but got 'tensor<4xf32>' and  [CAL4]}}
  fi.run @f(%a : tensor<4xf32>) by(%p) outs(%a : tensor<4xf32>)
  return
}

// -----

fi.program @f run(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  fi.return %a, %a : tensor<4xf32>, tensor<4xf32>
}
func.func @g(%a: tensor<4xf32>, %o: memref<4xf32>) {
  %p = fi.plan @f()
  // expected-error @+1 {{expected 'outs' to be tensors all, or memrefs all, but got 'tensor<4xf32>', 'memref<4xf32>' [CAL4]}}
  %r = fi.run @f(%a : tensor<4xf32>) by(%p) outs(%a, %o : tensor<4xf32>, memref<4xf32>) -> tensor<4xf32>
  return
}

// -----

fi.program @f run() {
  fi.return
}
fi.program @other run() {
  fi.return
}
func.func @g() {
  %p = fi.plan @other()
  // expected-error @+1 {{expected operand 'plan' to be the result of fi.plan of 'f', but got that of 'other' [CAL5]}}
  fi.run @f() by(%p)
  return
}

// -----

fi.program @f run() {
  fi.return
}
func.func @g(%p: !fi.plan) {
  // expected-error @+1 {{expected operand 'plan' to be the result of fi.plan of 'f' [CAL5]}}
  fi.run @f() by(%p)
  return
}
