// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message; the numbers are those of docs/spec.md.

// expected-error @+1 {{expected argument group 'run'}}
fi.program @p plan(%a: tensor<?xi32>) -> () {
  fi.return
}

// -----

// expected-error @+1 {{expected a public symbol, but got visibility 'private' [PRG1]}}
fi.program @p run() attributes {sym_visibility = "private"} {
  fi.return
}

// -----

// expected-error @+1 {{expected result 0 to be a ranked tensor, but got 'f32' [PRG2]}}
fi.program @p run(%a: f32) -> (f32) {
  fi.return %a : f32
}

// -----

// expected-error @+1 {{expected argument names to differ, but got 'x' twice [PRG3]}}
fi.program @p plan(%a: f32 {fi.name = "x"}) run(%x: f32) {
  fi.return
}

// -----

// expected-error @+1 {{expected plan argument 'late' before the run arguments [PRG4]}}
fi.program @p run(%a: f32, %late: index {fi.plan}) {
  fi.return
}

// -----

// expected-error @+1 {{expected argument 'a' to be a tensor, a memref or a scalar, but got '!fi.segments' [PRG5]}}
fi.program @p run(%a: !fi.segments) {
  fi.return
}

// -----

// expected-error @+1 {{expected argument 'a' to be a tensor, a memref or a scalar, but got 'tensor<*xf32>' [PRG5]}}
fi.program @p run(%a: tensor<*xf32>) {
  fi.return
}

// -----

fi.program @p run(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  // expected-error @+1 {{expected 1 operands, one for each result of the program, but got 0 [PRG7]}}
  fi.return
}

// -----

fi.program @p run(%a: tensor<4xf32>) -> (tensor<8xf32>) {
  // expected-error @+1 {{expected operand 0 of type 'tensor<8xf32>', but got 'tensor<4xf32>' [PRG7]}}
  fi.return %a : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected a body that ends in fi.return [PRG6]}}
fi.program @p run(%a: f32) {
  %b = arith.addf %a, %a : f32
}

// -----

func.func @f() {
  // expected-error @+1 {{expects parent op 'fi.program'}}
  fi.return
}
